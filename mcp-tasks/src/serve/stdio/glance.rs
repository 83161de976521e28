//! What can be told of a message that is not decoded, because it is too long to be kept or is no JSON.

use std::borrow::Cow;

use serde::Deserialize;

use crate::serve::message::Id;

/// The longest member name and the longest scalar that are kept, in bytes: ids are counters or UUIDs.
const MOST: usize = 256;

/// A look at the members of a message's outermost object while it passes by. It holds one name and one value at a time. What
/// is no JSON inside of a value, or an end that is missing, does not keep it from seeing the other members.
#[derive(Debug, Default)]
pub(super) struct Glance {
    /// In how many containers the next byte lies.
    depth: usize,
    /// Nothing more is looked at: the outermost object has ended, or the text does not begin with one.
    is_over: bool,
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
    /// A request whose id is none, or cannot be told for certain.
    Nameless,
    /// None of these.
    Unknown,
}

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl Glance {
    /// Looks at what comes next.
    pub(super) fn look(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.next(*byte);
        }
    }

    fn next(&mut self, byte: u8) {
        if self.is_over {
            return;
        }
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
            b' ' | b'\t' | b'\r' | b'\n' => {}
            // The bytes of a byte order mark, which may stand in front.
            0xef | 0xbb | 0xbf if self.depth == 0 => {}
            _ if self.depth == 0 && byte != b'{' => self.is_over = true,
            b'"' => {
                self.in_string = true;
                self.keep(byte);
            }
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => {
                if self.depth == 1 {
                    self.member();
                    self.is_over = true;
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => self.name = std::mem::take(&mut self.token),
            b',' if self.depth == 1 => self.member(),
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
        let name = std::mem::take(&mut self.name);
        let value = std::mem::take(&mut self.token);
        let Ok(Name(name)) = serde_json::from_slice(&name) else {
            return;
        };
        match &*name {
            "id" => {
                // Of two ids neither is the one. A token that was cut is no id either.
                let is_first = !std::mem::replace(&mut self.has_id, true);
                let id = serde_json::from_slice(&value).ok().filter(|_| is_first);
                self.id = id.map(Id::into_owned);
            }
            "method" => self.has_method = true,
            "result" | "error" => self.is_answer = true,
            _ => {}
        }
    }

    /// What it was, once it has ended.
    pub(super) fn seen(mut self) -> Seen {
        if self.depth > 0 && !self.is_over {
            // The text ends inside of a member. More digits might have followed those of a number.
            if !self.token.ends_with(b"\"") || self.in_string {
                self.token.clear();
            }
            self.member();
        }
        match self.id {
            Some(id) if self.has_method => Seen::Request(id),
            None if self.has_method && self.has_id => Seen::Nameless,
            None if self.has_method => Seen::Unanswered,
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
            assert_eq!(seen(text), Seen::Request(Id::Number(7)), "{text}");
        }
        let text = Id::Text(Cow::Borrowed("a"));
        assert_eq!(seen(r#"{"method":"x","id":"a""#), Seen::Request(text));
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
            assert_eq!(seen(text), Seen::Nameless, "{text}");
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
            assert_eq!(seen(text), Seen::Unknown, "{text}");
        }
    }
}
