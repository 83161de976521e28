//! What the server says of a message that it delivers, in the subject for its acknowledgement.

/// The place of a delivered message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Delivery {
    pub(super) stream_sequence: u64,
    pub(super) consumer_sequence: u64,
    /// When it was stored, since 1970.
    pub(super) nanoseconds: u64,
    /// How many more wait for delivery.
    pub(super) pending: u64,
}

impl Delivery {
    /// Reads `$JS.ACK.<stream>.<consumer>.<times>.<sequence>.<sequence>.<time>.<pending>`, or the longer form with a domain
    /// and an account in front of the stream and a token behind.
    ///
    /// The driver's own reading names the time in a type that depends on the features of whoever else uses it.
    pub(super) fn parse(reply: &str) -> Option<Self> {
        let tokens: Vec<&str> = reply.strip_prefix("$JS.ACK.")?.split('.').collect();
        let at = match tokens.len() {
            7 => 3,
            9.. => 5,
            _ => return None,
        };
        let number = |offset: usize| tokens.get(at + offset)?.parse().ok();
        Some(Self {
            stream_sequence: number(0)?,
            consumer_sequence: number(1)?,
            nanoseconds: number(2)?,
            pending: number(3)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_others_are_not() {
        let wanted = Some(Delivery {
            stream_sequence: 10,
            consumer_sequence: 20,
            nanoseconds: 1_700_000_000_000_000_000,
            pending: 3,
        });
        for reply in [
            "$JS.ACK.KV_t.abc.1.10.20.1700000000000000000.3",
            "$JS.ACK._.hash.KV_t.abc.1.10.20.1700000000000000000.3",
            "$JS.ACK.hub.hash.KV_t.abc.1.10.20.1700000000000000000.3.token",
        ] {
            assert_eq!(Delivery::parse(reply), wanted, "{reply}");
        }
        for reply in ["", "_INBOX.a", "$JS.ACK.KV_t.abc.1.x.20.17.3", "$JS.ACK.a.b"] {
            assert_eq!(Delivery::parse(reply), None, "{reply}");
        }
    }
}
