//! Whether a value fits a field, and the words for when it does not.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::format::Format;
use crate::number::{ExactNumber, from_integer};

/// How many characters of a user's text an error repeats.
const SHOWN_CHARACTERS: usize = 40;

/// How many options an error lists; the form itself shows all.
const SHOWN_OPTIONS: usize = 10;

/// What a field asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FieldKind {
    Text {
        length: Range,
        format: Option<Format>,
    },
    Number {
        whole: bool,
        minimum: Option<Number>,
        maximum: Option<Number>,
    },
    Boolean,
    OneOf(Vec<String>),
    SomeOf {
        options: Vec<String>,
        count: Range,
    },
}

/// Inclusive bounds of a length or a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
}

impl FieldKind {
    /// The value in the form in which it is kept, or what is wrong with it, as the rest of a sentence about the field.
    pub(super) fn check(&self, value: &Value) -> Result<Value, String> {
        match self {
            Self::Text { length, format } => {
                let text = value.as_str().ok_or_else(|| must_be("text", value))?;
                length.check(text.chars().count(), "character")?;
                match format {
                    Some(format) if !format.matches(text) => Err(must_be(format.expected(), value)),
                    _ => Ok(value.clone()),
                }
            }
            Self::Number {
                whole,
                minimum,
                maximum,
            } => check_number(*whole, minimum.as_ref(), maximum.as_ref(), value),
            Self::Boolean if value.is_boolean() => Ok(value.clone()),
            Self::Boolean => Err(must_be("true or false", value)),
            Self::OneOf(options) => check_option(options, value).map(|()| value.clone()),
            Self::SomeOf { options, count } => {
                let chosen = value.as_array().ok_or_else(|| must_be("a list of choices", value))?;
                count.check(chosen.len(), "choice")?;
                chosen
                    .iter()
                    .try_for_each(|choice| check_option(options, choice))
                    .map(|()| value.clone())
            }
        }
    }
}

impl Range {
    /// Whether no length is in it.
    pub(super) fn is_empty(self) -> bool {
        matches!((self.min, self.max), (Some(min), Some(max)) if min > max)
    }

    fn check(self, length: usize, unit: &str) -> Result<(), String> {
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        let (words, bound) = match (self.min, self.max) {
            (Some(min), _) if length < min => ("at least", min),
            (_, Some(max)) if length > max => ("at most", max),
            _ => return Ok(()),
        };
        let plural = if bound == 1 { "" } else { "s" };
        Err(format!("must have {words} {bound} {unit}{plural}, not {length}"))
    }
}

fn check_number(
    whole: bool,
    minimum: Option<&Number>,
    maximum: Option<&Number>,
    value: &Value,
) -> Result<Value, String> {
    let expected = if whole { "a whole number" } else { "a number" };
    let Value::Number(number) = value else {
        return Err(must_be(expected, value));
    };
    let exact = ExactNumber::of(number);
    let kept = match (exact, whole) {
        (ExactNumber::OutOfRange, _) => return Err("must be a number that is closer to zero".to_owned()),
        (_, false) => value.clone(),
        (ExactNumber::Double(double), true) if double.trunc() != double => {
            return Err(must_be(expected, value));
        }
        // Whole, but neither i64 nor u64 holds it, so neither does anything the author deserializes it into.
        (_, true) => match exact.integer().and_then(from_integer) {
            Some(integer) => Value::Number(integer),
            None => return Err(must_be("a whole number of at most 64 bits", value)),
        },
    };
    let beyond = |bound: Option<&Number>, side: Ordering| {
        bound
            .filter(|bound| exact.compare(ExactNumber::of(bound)) == Some(side))
            .map(ToString::to_string)
    };
    if let Some(minimum) = beyond(minimum, Ordering::Less) {
        return Err(must_be(&format!("at least {minimum}"), value));
    }
    if let Some(maximum) = beyond(maximum, Ordering::Greater) {
        return Err(must_be(&format!("at most {maximum}"), value));
    }
    Ok(kept)
}

fn check_option(options: &[String], value: &Value) -> Result<(), String> {
    if value
        .as_str()
        .is_some_and(|text| options.iter().any(|option| option == text))
    {
        return Ok(());
    }
    let mut listed: Vec<_> = options
        .iter()
        .take(SHOWN_OPTIONS)
        .map(|option| quoted(option))
        .collect();
    if options.len() > SHOWN_OPTIONS {
        listed.push("…".to_owned());
    }
    Err(must_be(&format!("one of {}", listed.join(", ")), value))
}

fn must_be(expected: &str, value: &Value) -> String {
    format!("must be {expected}, not {}", describe_value(value))
}

/// A value in an error for the user.
pub(super) fn describe_value(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => shortened(&number.to_string()),
        Value::String(text) => format!("the text {}", quoted(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// In quotes and on one line, so that a text cannot look like a part of the message.
fn quoted(text: &str) -> String {
    format!("{:?}", shortened(text))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ANY: Range = Range { min: None, max: None };

    fn number(whole: bool, minimum: &str, maximum: &str) -> FieldKind {
        let bound = |text: &str| serde_json::from_str(text).ok();
        FieldKind::Number {
            whole,
            minimum: bound(minimum),
            maximum: bound(maximum),
        }
    }

    fn check(kind: &FieldKind, json: &str) -> Result<String, String> {
        kind.check(&serde_json::from_str(json).unwrap())
            .map(|value| value.to_string())
    }

    #[test]
    fn integers_beyond_doubles_are_exact() {
        let kind = number(true, "-9223372036854775808", "9007199254740993");
        assert_eq!(check(&kind, "9007199254740993").as_deref(), Ok("9007199254740993"));
        assert_eq!(
            check(&kind, "-9223372036854775808").as_deref(),
            Ok("-9223372036854775808")
        );
        assert!(
            check(&kind, "9007199254740994")
                .unwrap_err()
                .starts_with("must be at most 9007199254740993")
        );
        let open = number(true, "", "");
        assert_eq!(
            check(&open, "18446744073709551615").as_deref(),
            Ok("18446744073709551615")
        );
        for too_large in ["18446744073709551616", "1e300", "-1e19"] {
            assert!(
                check(&open, too_large)
                    .unwrap_err()
                    .starts_with("must be a whole number of at most 64 bits")
            );
        }
        assert_eq!(check(&open, "1e3").as_deref(), Ok("1000"));
        assert_eq!(check(&open, "-0.0").as_deref(), Ok("0"));
    }

    #[test]
    fn bounds_are_inclusive_and_may_be_fractions() {
        let kind = number(false, "0.5", "1.5");
        for good in ["0.5", "1", "1.5"] {
            assert_eq!(check(&kind, good).as_deref(), Ok(good));
        }
        assert_eq!(check(&kind, "0.25").unwrap_err(), "must be at least 0.5, not 0.25");
        assert_eq!(check(&kind, "2").unwrap_err(), "must be at most 1.5, not 2");
        assert_eq!(
            check(&kind, "\"1\"").unwrap_err(),
            "must be a number, not the text \"1\""
        );
    }

    #[test]
    fn text_is_counted_in_characters_and_checked_for_its_format() {
        let kind = FieldKind::Text {
            length: Range {
                min: Some(1),
                max: Some(3),
            },
            format: None,
        };
        assert!(kind.check(&json!("äöü")).is_ok());
        assert_eq!(
            kind.check(&json!("")).unwrap_err(),
            "must have at least 1 character, not 0"
        );
        assert_eq!(
            kind.check(&json!("abcd")).unwrap_err(),
            "must have at most 3 characters, not 4"
        );
        assert_eq!(kind.check(&json!(1)).unwrap_err(), "must be text, not 1");
        let date = FieldKind::Text {
            length: ANY,
            format: Some(Format::Date),
        };
        assert_eq!(
            date.check(&json!("28.07.2026")).unwrap_err(),
            "must be a date such as `2026-07-28`, not the text \"28.07.2026\""
        );
    }

    #[test]
    fn choices_are_texts_of_the_list() {
        let options: Vec<_> = (0..12).map(|i| format!("o{i}")).collect();
        let one = FieldKind::OneOf(options.clone());
        assert!(one.check(&json!("o11")).is_ok());
        assert!(
            one.check(&json!("O1"))
                .unwrap_err()
                .contains("\"o9\", …, not the text \"O1\"")
        );
        assert!(one.check(&json!(["o1"])).is_err());
        let some = FieldKind::SomeOf {
            options,
            count: Range {
                min: None,
                max: Some(2),
            },
        };
        assert!(some.check(&json!([])).is_ok());
        assert!(some.check(&json!(["o1", "o2"])).is_ok());
        assert_eq!(
            some.check(&json!(["o1", "o2", "o3"])).unwrap_err(),
            "must have at most 2 choices, not 3"
        );
        assert!(some.check(&json!(["o1", null])).unwrap_err().ends_with("not null"));
        assert_eq!(
            some.check(&json!("o1")).unwrap_err(),
            "must be a list of choices, not the text \"o1\""
        );
        assert!(FieldKind::Boolean.check(&json!("true")).is_err());
    }

    #[test]
    fn what_the_user_wrote_is_repeated_short_and_on_one_line() {
        let long = "ä".repeat(41);
        let reason = FieldKind::Boolean.check(&json!(long)).unwrap_err();
        assert_eq!(
            reason,
            format!("must be true or false, not the text \"{}…\"", "ä".repeat(40))
        );
        assert!(
            FieldKind::Boolean
                .check(&json!("a\nb\u{202e}"))
                .unwrap_err()
                .ends_with(r#""a\nb\u{202e}""#)
        );
    }
}
