//! The four string formats an elicitation form knows.

use jiff::Timestamp;
use jiff::civil::Date;

/// A `format` of a string field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Email,
    Uri,
    Date,
    DateTime,
}

impl Format {
    pub(super) fn parse(name: &str) -> Option<Self> {
        match name {
            "email" => Some(Self::Email),
            "uri" => Some(Self::Uri),
            "date" => Some(Self::Date),
            "date-time" => Some(Self::DateTime),
            _ => None,
        }
    }

    /// What the user should have written.
    pub(super) const fn expected(self) -> &'static str {
        match self {
            Self::Email => "an e-mail address such as `name@example.com`",
            Self::Uri => "a URI with its scheme, such as `https://example.com/`",
            Self::Date => "a date such as `2026-07-28`",
            Self::DateTime => "a date and time with its offset, such as `2026-07-28T09:30:00Z`",
        }
    }

    pub(super) fn matches(self, text: &str) -> bool {
        match self {
            Self::Email => is_email(text),
            Self::Uri => is_uri(text),
            Self::Date => is_date(text),
            Self::DateTime => is_date_time(text),
        }
    }
}

/// What a mail server has a chance to deliver: a local part and a domain of labels around the last `@`, no blanks, within
/// the lengths of RFC 5321. Whether the address exists only a mail tells, so no finer grammar is worth its refusals.
fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_alphanumeric() || c == '-')
    };
    text.len() <= 254
        && (1..=64).contains(&local.len())
        && !local
            .chars()
            .any(|c| c.is_whitespace() || c.is_control() || matches!(c, '@' | '<' | '>' | ',' | ';'))
        && domain.split('.').all(label)
}

/// An absolute URI in the outline of RFC 3986: a scheme, a colon, something behind it, whole percent escapes, and none of
/// the characters that have to be escaped. Letters beyond ASCII pass, as browsers show them in the address people copy.
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
        && !rest.is_empty()
        && !rest.chars().any(|c| {
            c.is_whitespace() || c.is_control() || matches!(c, '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}')
        })
        && rest.split('%').skip(1).all(|after| {
            let mut digits = after.chars();
            (0..2).all(|_| digits.next().is_some_and(|c| c.is_ascii_hexdigit()))
        })
}

/// RFC 3339 `full-date`. The parser also takes shorter and longer spellings, so the shape is looked at first.
fn is_date(text: &str) -> bool {
    has_shape(text.as_bytes(), b"0000-00-00") && text.parse::<Date>().is_ok()
}

/// RFC 3339 `date-time`, with at most nine digits of a second's fraction. Again the shape first: the parser would take a
/// text without seconds, with a blank for the `T`, or with the name of a time zone.
fn is_date_time(text: &str) -> bool {
    let Some((head, tail)) = text.as_bytes().split_at_checked("0000-00-00T00:00:00".len()) else {
        return false;
    };
    let fraction = tail.iter().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
    let offset = match tail.first() {
        Some(b'.') if fraction > 0 => &tail[1 + fraction..],
        _ => tail,
    };
    has_shape(head, b"0000-00-00T00:00:00")
        && (offset.eq_ignore_ascii_case(b"Z") || has_shape(offset, b"+00:00") || has_shape(offset, b"-00:00"))
        && text.parse::<Timestamp>().is_ok()
}

/// Whether the text has a digit wherever the shape has `0`, and the same character elsewhere, letters in either case.
fn has_shape(text: &[u8], shape: &[u8]) -> bool {
    text.len() == shape.len()
        && text.iter().zip(shape).all(|(byte, expected)| match expected {
            b'0' => byte.is_ascii_digit(),
            _ => byte.eq_ignore_ascii_case(expected),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: Format, good: &[&str], bad: &[&str]) {
        for text in good {
            assert!(format.matches(text), "{text} is {}", format.expected());
        }
        for text in bad {
            assert!(!format.matches(text), "{text} is not {}", format.expected());
        }
    }

    #[test]
    fn email() {
        let long = format!("{}@example.com", "a".repeat(65));
        check(
            Format::Email,
            &[
                "a@b",
                "name@example.com",
                "first.last+tag@sub.example.org",
                "jörg@müller.example",
                "\"a\"@b.c",
            ],
            &[
                "",
                "@",
                "a@",
                "@b",
                "a b@c.d",
                "a@b c",
                "a@b..c",
                "a@-b.c",
                "a@b.c-",
                "a@b@c",
                "Jo <a@b.c>",
                "a@b.c,d@e.f",
                &long,
            ],
        );
    }

    #[test]
    fn uri() {
        check(
            Format::Uri,
            &[
                "https://example.com/",
                "urn:isbn:0451450523",
                "mailto:a@b.c",
                "x+y-1.z:q",
                "https://e.com/a%20b?c=d#e",
                "https://müller.example/ß",
                "http://[::1]:80/",
            ],
            &[
                "",
                "example.com",
                "/path",
                "://x",
                "1a:b",
                "https:",
                "https://a b",
                "https://a\nb",
                "https://e.com/%2",
                "https://e.com/%zz",
                "https://e.com/{id}",
                "hä:b",
            ],
        );
    }

    #[test]
    fn date() {
        check(
            Format::Date,
            &["2026-07-28", "2024-02-29", "0001-01-01", "9999-12-31"],
            &[
                "",
                "2026-02-29",
                "2026-13-01",
                "2026-7-28",
                "20260728",
                "28.07.2026",
                "2026-07-28T00:00:00Z",
                " 2026-07-28",
                "٢٠٢٦-٠٧-٢٨",
                "+002026-07-28",
            ],
        );
    }

    #[test]
    fn date_time() {
        check(
            Format::DateTime,
            &[
                "2026-07-28T09:30:00Z",
                "2026-07-28t09:30:00z",
                "2026-07-28T09:30:00.123456789+02:00",
                "2026-07-28T23:59:60Z",
                "1969-07-20T20:17:40-05:00",
                "2026-07-28T09:30:00-00:00",
            ],
            &[
                "",
                "2026-07-28",
                "2026-07-28T09:30Z",
                "2026-07-28T09:30:00",
                "2026-07-28 09:30:00Z",
                "2026-07-28T25:00:00Z",
                "2026-02-30T09:30:00Z",
                "2026-07-28T09:30:00.Z",
                "2026-07-28T09:30:00,5Z",
                "2026-07-28T09:30:00Z[UTC]",
                "2026-07-28T09:30:00+0200",
                "2026-07-28T09:30:00+02:00:00",
                "2026-07-28T09:30:00+99:00",
                "2026-07-28T09:30:0ä",
            ],
        );
    }
}
