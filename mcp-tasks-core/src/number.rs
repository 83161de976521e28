//! The value of a JSON number, the same with every feature set of `serde_json`.

use std::cmp::Ordering;

use serde_json::Number;

/// A JSON number, read from its text, because `arbitrary_precision` keeps nothing else.
///
/// What is written as an integer and fits `i64` or `u64` is exact; everything else is the nearest double. Without
/// `arbitrary_precision` that is what the parser keeps, so the answer is the same with it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ExactNumber {
    /// Between `i64::MIN` and `u64::MAX`.
    Integer(i128),
    /// Finite.
    Double(f64),
    /// OutOfRange every double, such as `1e400`; without `arbitrary_precision` it does not parse.
    OutOfRange,
}

impl ExactNumber {
    pub(crate) fn of(number: &Number) -> Self {
        let text = number.to_string();
        match text.parse::<i128>() {
            Ok(integer) if is_json_integer(integer) => Self::Integer(integer),
            _ => match text.parse::<f64>() {
                Ok(double) if double.is_finite() => Self::Double(double),
                _ => Self::OutOfRange,
            },
        }
    }

    /// The number as an integer, if it is one: `3`, `3.0` and `3e0`, but not `3.5`, and nothing that neither `i64` nor
    /// `u64` holds.
    pub(crate) fn integer(self) -> Option<i128> {
        match self {
            Self::Integer(integer) => Some(integer),
            // The cast saturates, and what it saturates to is out of range again.
            Self::Double(double) if double.trunc() == double => Some(double as i128).filter(|&i| is_json_integer(i)),
            _ => None,
        }
    }

    /// Which of two is larger, without rounding an integer to a double; `None` if either is [`ExactNumber::OutOfRange`].
    pub(crate) fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => Some(a.cmp(&b)),
            (Self::Double(a), Self::Double(b)) => a.partial_cmp(&b),
            (Self::Integer(a), Self::Double(b)) => integer_with_double(a, b),
            (Self::Double(a), Self::Integer(b)) => integer_with_double(b, a).map(Ordering::reverse),
            (Self::OutOfRange, _) | (_, Self::OutOfRange) => None,
        }
    }
}

fn is_json_integer(integer: i128) -> bool {
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&integer)
}

fn integer_with_double(integer: i128, double: f64) -> Option<Ordering> {
    // Saturating again: the integer is far from either end, so a double outside of i128 still compares right.
    let whole = double.trunc();
    match integer.cmp(&(whole as i128)) {
        Ordering::Equal => 0.0.partial_cmp(&(double - whole)),
        unequal => Some(unequal),
    }
}

/// The number for an integer that [`ExactNumber`] gave.
pub(crate) fn from_integer(integer: i128) -> Option<Number> {
    match u64::try_from(integer) {
        Ok(integer) => Some(integer.into()),
        Err(_) => i64::try_from(integer).ok().map(Number::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(text: &str) -> ExactNumber {
        ExactNumber::of(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn integers_are_told_by_value_and_not_by_spelling() {
        let table = [
            ("3", Some(3)),
            ("3.0", Some(3)),
            ("3e2", Some(300)),
            ("-0.0", Some(0)),
            ("-7", Some(-7)),
            ("9007199254740993", Some(9_007_199_254_740_993)),
            ("18446744073709551615", Some(u64::MAX.into())),
            ("-9223372036854775808", Some(i64::MIN.into())),
            ("18446744073709551616", None),
            ("-9223372036854775809", Some(i64::MIN.into())),
            ("1e300", None),
            ("1.5", None),
            ("1e-9", None),
        ];
        for (text, expected) in table {
            assert_eq!(exact(text).integer(), expected, "{text}");
            if let Some(integer) = expected {
                assert_eq!(from_integer(integer).unwrap().to_string(), integer.to_string());
            }
        }
    }

    #[test]
    fn comparison_does_not_round() {
        let ascending = [
            "-1e300",
            "-9223372036854775808",
            "-1.5",
            "-1",
            "-0.5",
            "0",
            "0.5",
            "1",
            "1.5",
            "9007199254740992.0",
            "9007199254740993",
            "18446744073709551615",
            "18446744073709551616",
            "1e300",
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(exact(a).compare(exact(b)), Some(i.cmp(&j)), "{a} {b}");
            }
        }
        assert_eq!(exact("1.0").compare(exact("1")), Some(Ordering::Equal));
        assert_eq!(ExactNumber::OutOfRange.compare(exact("1")), None);
    }
}
