//! The id of a request that cannot be decoded, because its line is too long to be kept or is not JSON.

use std::fmt;

use serde::Deserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::serve::message::{Id, Str};

/// How much of the outermost object is kept, in bytes. The members of a message are few, and apart from `params` and `result`
/// they are short.
const MOST: usize = 4096;

/// Reads the outermost members of a message as its bytes pass by. What lies deeper is left out, so that neither its length
/// nor a mistake in it matters: clients may send `id` behind `params`.
#[derive(Debug, Default)]
pub(super) struct IdScanner {
    /// The outermost object, with `null` for the containers in it.
    outermost: Vec<u8>,
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

/// What a message is, as far as its outermost members tell.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MessageKind {
    Request(Id<'static>),
    /// A request whose id is no id, or is not certain.
    RequestWithoutId,
    /// A notification or a response, which gets no response.
    Unanswered,
    Unknown,
}

impl IdScanner {
    /// Reads the bytes that come next.
    pub(super) fn scan(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.outermost.len() >= MOST {
                return;
            }
            self.scan_byte(*byte);
        }
    }

    fn scan_byte(&mut self, byte: u8) {
        let was_deeper = self.depth > 1;
        if self.in_string {
            self.in_string = self.is_escaped || byte != b'"';
            self.is_escaped = !self.is_escaped && byte == b'\\';
        } else {
            match byte {
                // Any number of them may stand between tokens.
                b' ' | b'\t' | b'\r' | b'\n' => return,
                b'"' => self.in_string = true,
                b'{' | b'[' => {
                    self.depth += 1;
                    if self.depth == 2 {
                        self.outermost.extend_from_slice(b"null");
                    }
                }
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        if self.depth <= 1 && !was_deeper {
            self.outermost.push(byte);
        }
    }

    /// What the message is, once all of it has been read.
    pub(super) fn kind(mut self) -> MessageKind {
        // A number at the end of a text that was cut may have had more digits.
        while self.depth > 0 && self.outermost.pop_if(|byte| byte.is_ascii_digit()).is_some() {}
        let text = self
            .outermost
            .strip_prefix("\u{feff}".as_bytes())
            .unwrap_or(&self.outermost);
        let mut members = Members::default();
        // The members in front of a mistake count.
        let _ = serde_json::Deserializer::from_slice(text).deserialize_map(&mut members);
        match members {
            Members {
                has_method: true,
                ids: 0,
                ..
            } => MessageKind::Unanswered,
            // Of two ids, neither is certain.
            Members {
                has_method: true,
                ids: 1,
                id: Some(id),
                ..
            } => MessageKind::Request(id),
            Members { has_method: true, .. } => MessageKind::RequestWithoutId,
            Members { is_response: true, .. } => MessageKind::Unanswered,
            _ => MessageKind::Unknown,
        }
    }
}

#[derive(Debug, Default)]
struct Members {
    ids: usize,
    id: Option<Id<'static>>,
    has_method: bool,
    is_response: bool,
}

impl<'de> Visitor<'de> for &mut Members {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Str(name)) = map.next_key()? {
            match &*name {
                "id" => {
                    self.ids += 1;
                    let id: &RawValue = map.next_value()?;
                    self.id = serde_json::from_str(id.get()).ok().map(Id::into_owned);
                    continue;
                }
                "method" => self.has_method = true,
                "result" | "error" => self.is_response = true,
                _ => {}
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn kind(text: &str) -> MessageKind {
        let mut scanner = IdScanner::default();
        // In pieces, as it comes.
        for piece in text.as_bytes().chunks(3) {
            scanner.scan(piece);
        }
        assert!(scanner.outermost.capacity() <= 2 * MOST);
        scanner.kind()
    }

    #[test]
    fn the_id_of_a_request_is_found_wherever_it_stands() {
        let (number, text) = (Id::Number(7), Id::Text(Cow::Borrowed(r#"a"},{"#)));
        for (id, shown) in [(number, "7"), (text, r#""a\"},{""#)] {
            for request in [
                format!(r#"{{"jsonrpc":"2.0","id":{shown},"method":"x","params":{{"id":1}}}}"#),
                format!(r#" {{ "method" : "x" , "params" : [[{{"id":1}}], "\\\"id\":3"] , "id" : {shown} }} "#),
                format!(
                    "\u{feff}{{\"params\":[\"{}\"],\"id\":{shown},\"method\":\"\"}}",
                    "x".repeat(5000)
                ),
            ] {
                assert_eq!(kind(&request), MessageKind::Request(id.clone()), "{request}");
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
            assert_eq!(kind(text), MessageKind::Unanswered, "{text}");
        }
    }

    #[test]
    fn a_request_is_known_whatever_is_wrong_with_its_other_members() {
        for text in [
            r#"{"id":7,"method":"x","params":{"a":"\ud800"}}"#,
            r#"{"id":7,"method":"x","params":[1e999,tru,}]}"#,
            r#"{"\u0069d":7,"m\u0065thod":"x","\ud800":1}"#,
            r#"{"id":7,"method":"x"} and so on {"id":8}"#,
            r#"{"id":7,"method":"x""#,
            r#"{"id":7,"method":"x"#,
            r#"{"id":7,"method":"#,
            r#"{"id":7,"method":"x","par"#,
            r#"{"id":7,"method":"x","params":{"a":["#,
        ] {
            assert_eq!(kind(text), MessageKind::Request(Id::Number(7)), "{text}");
        }
        let text = Id::Text(Cow::Borrowed("a"));
        assert_eq!(kind(r#"{"method":"x","id":"a""#), MessageKind::Request(text));
    }

    #[test]
    fn an_id_that_is_not_certain_is_not_taken() {
        let long = format!(r#"{{"method":"x","id":"{}"}}"#, "x".repeat(MOST));
        for text in [
            r#"{"id":null,"method":"x"}"#,
            r#"{"id":1.5,"method":"x"}"#,
            r#"{"id":{"a":1},"method":"x"}"#,
            r#"{"id":"\ud800","method":"x"}"#,
            r#"{"id":1,"id":2,"method":"x"}"#,
            r#"{"method":"x","id":12"#,
            r#"{"method":"x","id":"a"#,
            r#"{"method":"x","id":"a\""#,
            r#"{"method":"x","id":"#,
            &long,
        ] {
            assert_eq!(kind(text), MessageKind::RequestWithoutId, "{text}");
        }
    }

    #[test]
    fn what_is_no_message_is_unknown() {
        for text in [
            "",
            "7",
            "{",
            "}}}}",
            "{}",
            r#"{"id":1}"#,
            r#""id":1,"method":"x""#,
            r#"{"params":{"id":1,"method":"x"}"#,
            r#"[{"id":1,"method":"x"}]"#,
            r#"[[{"id":1,"method":"x"}]]"#,
            r#"INFO {"id":1,"method":"x"}"#,
            r#"{"id":1,"meth"#,
        ] {
            assert_eq!(kind(text), MessageKind::Unknown, "{text}");
        }
    }
}
