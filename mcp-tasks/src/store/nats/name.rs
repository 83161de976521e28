//! What buckets and keys are called.

use std::fmt::Write as _;

/// JetStream names a stream after its bucket (`KV_<bucket>`), and takes 255 bytes for that.
const LONGEST_BUCKET: usize = 252;

/// A key is part of a subject, which goes into one line of the protocol with two names of the bucket; servers close the
/// connection of a client whose line has more than 4,096 bytes. Ids that the runtime makes have 32.
const LONGEST_KEY: usize = 512;

/// What begins an encoded byte: a character of keys that ordinary ids do not have.
const ESCAPE: char = '=';

/// The bucket that a key prefix names: the prefix without the `:` at its end.
pub(super) fn bucket(prefix: &str) -> Result<String, String> {
    let bucket = prefix.strip_suffix(':').unwrap_or(prefix);
    let plain = bucket
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if bucket.is_empty() || bucket.len() > LONGEST_BUCKET || !plain {
        return Err(format!(
            "the key prefix `{}` names no NATS bucket: write 1 to {LONGEST_BUCKET} letters, digits, `-` or `_`, with or \
             without a `:` at the end, such as `mcp-tasks:`",
            prefix.escape_debug()
        ));
    }
    Ok(bucket.to_owned())
}

/// The key of a task id: letters, digits, `-`, `_` and `/` are themselves, every other byte is `=` and two hexadecimal
/// digits, and the empty id is `=`. `None` if that is longer than a key may be.
pub(super) fn key(id: &str) -> Option<String> {
    let mut key = String::with_capacity(id.len());
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'/') {
            key.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(key, "{ESCAPE}{byte:02X}");
        }
    }
    if key.is_empty() {
        key.push(ESCAPE);
    }
    (key.len() <= LONGEST_KEY).then_some(key)
}

/// The task id of a key; `None` for a key that no id has.
pub(super) fn id(key: &str) -> Option<String> {
    if key.len() == 1 && key.starts_with(ESCAPE) {
        return Some(String::new());
    }
    let mut bytes = Vec::with_capacity(key.len());
    let mut rest = key.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'=' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            u8::try_from(digit()? * 16 + digit()?).ok()?
        } else {
            byte
        });
    }
    let id = String::from_utf8(bytes).ok()?;
    (self::key(&id)? == key).then_some(id)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_prefix_names_a_bucket_or_is_refused() {
        assert_eq!(bucket("mcp-tasks:").unwrap(), "mcp-tasks");
        assert_eq!(bucket("Prod_7").unwrap(), "Prod_7");
        for prefix in [
            "",
            ":",
            "a:b:",
            "a.b",
            "a b",
            "é",
            "a::",
            "a/b",
            &"x".repeat(253),
            "a*",
            "a\n",
        ] {
            let error = bucket(prefix).unwrap_err();
            assert!(error.contains("`mcp-tasks:`"), "{error}");
        }
    }

    #[test]
    fn ordinary_ids_stay_readable() {
        let id = "0123456789abcdef0123456789ABCDEF";
        assert_eq!(key(id).unwrap(), id);
        assert_eq!(key("a/b-c_d.e*>").unwrap(), "a/b-c_d=2Ee=2A=3E");
        assert_eq!(key("").unwrap(), "=");
        assert_eq!(key("=").unwrap(), "=3D");
        assert_eq!(key(&"a".repeat(513)), None);
        assert_eq!(key(&" ".repeat(171)), None);
    }

    #[test]
    fn every_key_is_read_as_its_id() {
        for id in ["", "=", "==", "=3D", "a=b", "a/b", "é"] {
            assert_eq!(super::id(&key(id).unwrap()).as_deref(), Some(id));
        }
    }

    #[test]
    fn a_key_that_no_id_has_is_seen() {
        for key in ["a=2", "a=2e", "a.b", "=FF", "=41", "==", "=+1"] {
            assert_eq!(id(key), None, "{key}");
        }
    }

    proptest! {
        #[test]
        fn different_ids_have_different_keys_of_allowed_characters(given in ".{0,40}") {
            let key = key(&given).unwrap();
            prop_assert!(key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-/_=".contains(&b)));
            prop_assert_eq!(id(&key).unwrap(), given);
        }
    }
}
