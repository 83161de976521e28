//! How records lie in Redis: the names of keys, and what is in a value.

/// Over how many hash tags the tasks of a prefix are spread. What one tag covers lies on one node of a cluster, so that a
/// script may write a record and the index of its leases in one step. Enough for more nodes than a task store is given, and
/// few enough that the recovery scan, which asks for each once in a lease, is nothing.
pub(super) const SHARDS: u16 = 64;

/// The length of a version at the head of a value: 64 bits in hexadecimal.
pub(super) const VERSION: usize = 16;

/// The names that a prefix leads to.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    prefix: Box<str>,
}

/// Where a task lies.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The key of its record.
    pub(super) record: String,
    /// The sorted set in which its lease is noted, under the same hash tag.
    pub(super) leases: String,
}

impl Keys {
    /// Refuses a prefix that would take its meaning from the hash tag.
    pub(super) fn new(prefix: &str) -> Result<Self, String> {
        let tag = prefix.split_once('{').map(|(_, tag)| tag);
        if tag.is_some_and(|tag| tag.starts_with('}')) {
            return Err(
                "a key prefix with an empty hash tag, `{}`, puts what belongs together on several nodes of a \
                 cluster; leave the braces out of it"
                    .to_owned(),
            );
        }
        Ok(Self { prefix: prefix.into() })
    }

    pub(super) fn place(&self, id: &str) -> Place {
        let leases = self.leases(shard(id));
        Place {
            record: format!("{leases}:{id}"),
            leases,
        }
    }

    /// The sorted set of a shard: ids by the time their lease ends. No record has this name, as a record's goes on with a
    /// colon.
    pub(super) fn leases(&self, shard: u16) -> String {
        format!("{}{{{shard}}}", self.prefix)
    }

    /// Where changes are published.
    pub(super) fn channel(&self) -> String {
        format!("{}changes", self.prefix)
    }
}

/// The shard of an id: FNV-1a, which is the same in every release and on every machine. Stored data depends on it.
fn shard(id: &str) -> u16 {
    let hash = id.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    // Folded, as the low bits alone are the weakest.
    u16::try_from((hash ^ (hash >> 16)) % u32::from(SHARDS)).unwrap_or_default()
}

/// A version as it stands at the head of a value.
pub(super) fn version_text(version: u64) -> String {
    format!("{version:016x}")
}

/// Takes a value apart, if it is one.
pub(super) fn split(value: &[u8]) -> Option<(u64, &[u8])> {
    let (version, record) = value.split_at_checked(VERSION)?;
    let hexadecimal = version
        .iter()
        .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte));
    if !hexadecimal {
        return None;
    }
    let version = u64::from_str_radix(std::str::from_utf8(version).ok()?, 16).ok()?;
    Some((version, record))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_never_change_as_stored_data_depends_on_them() {
        let keys = Keys::new("mcp-tasks:").unwrap();
        let place = keys.place("nXdjZGxvFqYpZQOb3oNKCQ");
        assert_eq!(place.record, "mcp-tasks:{16}:nXdjZGxvFqYpZQOb3oNKCQ");
        assert_eq!(place.leases, "mcp-tasks:{16}");
        assert_eq!(keys.channel(), "mcp-tasks:changes");
        assert_eq!(version_text(255), "00000000000000ff");
    }

    #[test]
    fn ids_are_spread_over_all_shards() {
        let shards: HashSet<_> = (0..2_000).map(|n| shard(&format!("task-{n}"))).collect();
        assert_eq!(shards.len(), usize::from(SHARDS));
    }

    #[test]
    fn a_prefix_that_breaks_the_hash_tag_is_refused() {
        for prefix in ["{}", "a{}b:"] {
            assert!(Keys::new(prefix).unwrap_err().contains("hash tag"), "{prefix}");
        }
        for prefix in ["", "{app}:", "a{b", "}{"] {
            assert!(Keys::new(prefix).is_ok(), "{prefix}");
        }
    }

    #[test]
    fn a_value_is_a_version_and_a_record() {
        assert_eq!(split(b"00000000000000ff{}"), Some((255, &b"{}"[..])));
        for broken in [
            &b""[..],
            b"{",
            b"{\"format\":1,\"version\":1}",
            b"00000000000000fF{}",
            b"+0000000000000ff{}",
        ] {
            assert_eq!(split(broken), None);
        }
    }
}
