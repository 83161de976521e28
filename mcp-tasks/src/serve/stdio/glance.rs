//! What can be told of a message that is too long to be kept.

use crate::serve::message::Id;

/// The longest member name and the longest scalar that are kept, in bytes: ids are counters or UUIDs.
const MOST: usize = 256;

/// A look at the members of a message's outermost object while it passes by. It holds one name and one value at a time, and
/// takes the text for JSON: where it is none, what is seen is of no use to anybody.
#[derive(Debug, Default)]
pub(super) struct Glance {
    /// In how many containers the next byte lies.
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// What was read of a name or a value of the outermost object.
    token: Vec<u8>,
    name: Vec<u8>,
    id: Option<Id<'static>>,
    has_id: bool,
    has_method: bool,
    is_answer: bool,
}

/// What a message was.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// A request with this id, whose sender waits for an answer.
    Request(Id<'static>),
    /// A notification or a response, which nobody answers.
    Unanswered,
    /// None of these, or a request whose id is none.
    Unknown,
}

impl Glance {
    /// Looks at what comes next.
    pub(super) fn look(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.next(*byte);
        }
    }

    fn next(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return self.keep(byte);
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.keep(byte);
            }
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => {
                if self.depth == 1 {
                    self.member();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => self.name = std::mem::take(&mut self.token),
            b',' if self.depth == 1 => self.member(),
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() <= MOST {
            self.token.push(byte);
        }
    }

    /// A member of the outermost object has ended.
    fn member(&mut self) {
        let value = std::mem::take(&mut self.token);
        match self.name.as_slice() {
            br#""id""# => {
                self.has_id = true;
                // A token that was cut is no id either.
                self.id = serde_json::from_slice(&value).ok().map(Id::into_owned);
            }
            br#""method""# => self.has_method = true,
            br#""result""# | br#""error""# => self.is_answer = true,
            _ => {}
        }
        self.name.clear();
    }

    /// What it was, once it has ended.
    pub(super) fn seen(self) -> Seen {
        match self.id {
            Some(id) if self.has_method => Seen::Request(id),
            _ if self.has_method && !self.has_id => Seen::Unanswered,
            _ if self.is_answer && !self.has_method => Seen::Unanswered,
            _ => Seen::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn seen(text: &str) -> Seen {
        let mut glance = Glance::default();
        // In pieces, as it comes.
        for piece in text.as_bytes().chunks(3) {
            glance.look(piece);
        }
        assert!(glance.token.capacity() <= 2 * MOST);
        glance.seen()
    }

    #[test]
    fn the_id_of_a_request_is_found_wherever_it_stands() {
        let (number, text) = (Id::Number(7), Id::Text(Cow::Borrowed(r#"a"},{"#)));
        for (id, shown) in [(number, "7"), (text, r#""a\"},{""#)] {
            for request in [
                format!(r#"{{"jsonrpc":"2.0","id":{shown},"method":"x","params":{{"id":1}}}}"#),
                format!(r#" {{ "method" : "x" , "params" : [[{{"id":1}}], "\\\"id\":3"] , "id" : {shown} }} "#),
                format!(
                    "\u{feff}{{\"id\":{shown},\"x\":\"{}\",\"method\":\"\"}}",
                    "x".repeat(5000)
                ),
            ] {
                assert_eq!(seen(&request), Seen::Request(id.clone()), "{request}");
            }
        }
    }

    #[test]
    fn notifications_and_responses_are_known() {
        for text in [
            r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"id":1}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"method":"x"}}"#,
            r#"{"id":1,"error":{}}"#,
        ] {
            assert_eq!(seen(text), Seen::Unanswered, "{text}");
        }
    }

    #[test]
    fn what_is_no_message_or_has_no_id_is_unknown() {
        let long = format!(r#"{{"method":"x","id":"{}"}}"#, "x".repeat(MOST));
        for text in [
            "",
            "7",
            "{",
            "}}}}",
            "{}",
            r#"{"id":1}"#,
            r#""id":1,"method":"x""#,
            r#"{"id":null,"method":"x"}"#,
            r#"{"id":1.5,"method":"x"}"#,
            r#"{"id":{"a":1},"method":"x"}"#,
            r#"[[{"id":1,"method":"x"}]]"#,
            &long,
        ] {
            assert_eq!(seen(text), Seen::Unknown, "{text}");
        }
    }
}
