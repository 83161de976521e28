//! The check that a line is what rmcp can decode, which sees the method on its way.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::serve::message::{Checked, Str};

/// What a message begins with on some systems, and means nothing (RFC 8259, section 8.1). rmcp passes over it too.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// A line of JSON.
#[derive(Debug)]
pub(super) struct JsonLine<'a> {
    /// Without the byte order mark.
    pub(super) text: &'a str,
    /// The method of a request or a notification.
    pub(super) method: Option<String>,
}

/// The text of a line that is JSON, and its method. rmcp decodes it, or answers what it is not; what fails here it would pass
/// over in silence.
///
/// One pass over the text, in which nothing is kept but the method.
///
/// # Errors
/// Says what is wrong.
pub(super) fn parse(line: &[u8]) -> Result<JsonLine<'_>, String> {
    let text = std::str::from_utf8(line).map_err(|error| format!("it is not UTF-8: {error}"))?;
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    match serde_json::from_str(text) {
        Ok(Method(method)) => Ok(JsonLine { text, method }),
        // No object, which rmcp answers.
        Err(error) if error.is_data() => Ok(JsonLine { text, method: None }),
        Err(error) => Err(format!("it is not JSON: {error}")),
    }
}

struct Method(Option<String>);

impl<'de> Deserialize<'de> for Method {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MethodVisitor;
        impl<'de> Visitor<'de> for MethodVisitor {
            type Value = Method;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Method, A::Error> {
                let mut method = None;
                while let Some(Str(name)) = map.next_key()? {
                    if name == "method" {
                        // What is no text is as far from rmcp's as what is not there.
                        if let Value::String(text) = map.next_value()? {
                            method = Some(text);
                        }
                    } else {
                        map.next_value::<Checked>()?;
                    }
                }
                Ok(Method(method))
            }
        }
        deserializer.deserialize_map(MethodVisitor)
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::ClientJsonRpcMessage;

    use super::*;

    fn deep(levels: usize) -> String {
        let nested = |value: String| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{value}}}"#);
        nested(format!(r#"{{"a":{}{}}}"#, "[".repeat(levels), "]".repeat(levels)))
    }

    /// What rmcp says of a line; it is silent where this is an error of the JSON itself.
    fn rmcp_is_silent(line: &[u8]) -> bool {
        let line = line
            .strip_prefix(BYTE_ORDER_MARK.to_string().as_bytes())
            .unwrap_or(line);
        match serde_json::from_slice::<ClientJsonRpcMessage>(line) {
            Ok(_) => false,
            Err(error) => !error.is_data(),
        }
    }

    #[test]
    fn a_line_fails_here_where_rmcp_would_be_silent_and_nowhere_else() {
        let with =
            |value: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"a":{value}}}}}"#);
        let (mut fine, mut silent) = (0, 0);
        for text in [
            with("1"),
            with(r#""\ud83d\ude00\u0000\/""#),
            with(r#""\ud800""#),
            with(r#"{"\udc00":1}"#),
            with("1e999"),
            with("-1e-999"),
            with("123456789012345678901234567890"),
            with("01"),
            with("[1,]"),
            with("\"\t\""),
            with("1") + " ",
            with("1") + "\r",
            with("1") + "}",
            with("1") + &with("2"),
            format!("{BYTE_ORDER_MARK}{}", with("1")),
            format!("{BYTE_ORDER_MARK}{BYTE_ORDER_MARK}{}", with("1")),
            with("1").replace(r#""tools/list""#, "7"),
            with("1").replace(r#""tools/list""#, r#"{"a":1e999}"#),
            with("1").replace(r#""id":1"#, r#""id":1,"id":2"#),
            with("1").replace(r#""id":1"#, r#""id":"\ud800""#),
            with("1").replace("2.0", "1.0"),
            "7".to_owned(),
            "[]".to_owned(),
            "{}".to_owned(),
            "{".to_owned(),
            "null".to_owned(),
            "nul".to_owned(),
            "hello".to_owned(),
        ]
        .into_iter()
        .chain((120..135).map(deep))
        {
            let is_ours = parse(text.as_bytes()).is_err();
            assert_eq!(is_ours, rmcp_is_silent(text.as_bytes()), "{text}");
            *(if is_ours { &mut silent } else { &mut fine }) += 1;
        }
        assert!(fine > 15 && silent > 15, "{fine} {silent}");
        let raw = |place: &str| {
            let byte = |byte: u8| if byte == b'#' { 0xff } else { byte };
            with(place).bytes().map(byte).collect::<Vec<_>>()
        };
        for bytes in [
            raw("\"#\""),
            raw("#"),
            raw("{\"#\":1}"),
            [with("1").as_bytes(), b"\xff"].concat(),
        ] {
            let bytes = bytes.as_slice();
            assert!(rmcp_is_silent(bytes));
            parse(bytes).unwrap_err();
        }
    }

    #[test]
    fn the_method_is_seen_however_it_is_written() {
        for text in [
            r#"{"method":"a/b"}"#,
            r#"{"\u006dethod":"a\/\u0062","params":{"method":"x"}}"#,
            "\u{feff} {\"id\":1,\"method\":\"a/b\"}\r\n",
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap().method.unwrap(), "a/b", "{text}");
        }
        for text in [r#"{"method":7}"#, r#"{"params":{"method":"x"}}"#, r#"["method","x"]"#] {
            assert!(parse(text.as_bytes()).unwrap().method.is_none(), "{text}");
        }
    }
}
