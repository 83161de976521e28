//! What tells one ledger entry from another: kind, name and request, reduced to 32 bytes.

use std::fmt::{self, Write as _};

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Number, Value};
use sha2::{Digest, Sha256};

use crate::number::ExactNumber;

/// Goes in front of everything hashed, so that a fingerprint is never equal to a hash made for another purpose, and so
/// that a change of the encoding can be told apart. Stored ledgers hold fingerprints: this encoding is frozen.
const DOMAIN: &[u8] = b"mcp-tasks/fingerprint/1";

/// The SHA-256 of what a ledger entry asked for.
///
/// A replay compares it with what the body asks at the same ordinal now; if they differ, the recorded answer belongs to
/// another question. It is stored, as 64 lower-case hex digits, so the same question has the same fingerprint in every
/// release and in every build, whatever features of `serde_json` other crates switch on.
///
/// ```
/// use mcp_tasks_core::ledger::Fingerprint;
/// use serde_json::json;
///
/// let asked = Fingerprint::of("elicit", "", Some(&json!({"message": "Go?", "limit": 1.0})));
/// let again = Fingerprint::of("elicit", "", Some(&json!({"limit": 1, "message": "Go?"})));
/// assert_eq!(asked, again);
/// assert_eq!(Fingerprint::from_hex(&asked.to_hex()), Ok(asked));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

/// A text that is no fingerprint: not exactly 64 lower-case hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint is 64 lower-case hex digits")]
#[non_exhaustive]
pub struct InvalidFingerprint;

impl Fingerprint {
    /// The fingerprint of an entry: its kind, its name or key, and its request in [canonical form](canonical_json).
    ///
    /// Each part is hashed with its length in front, so no two triples share an encoding. An absent request differs
    /// from every present one, null included.
    #[must_use]
    pub fn of(kind: &str, name: &str, request: Option<&Value>) -> Self {
        let mut hasher = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hasher.update((bytes.len() as u64).to_be_bytes());
            hasher.update(bytes);
        };
        part(DOMAIN);
        part(kind.as_bytes());
        part(name.as_bytes());
        if let Some(request) = request {
            part(canonical_json(request).as_bytes());
        }
        Self(hasher.finalize().into())
    }

    /// The bytes of the hash.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// As 64 lower-case hex digits.
    #[must_use]
    pub fn to_hex(&self) -> String {
        self.to_string()
    }

    /// Reads what [`to_hex`](Self::to_hex) wrote.
    ///
    /// # Errors
    ///
    /// [`InvalidFingerprint`] for anything else. Upper-case digits are refused too: one fingerprint has one text.
    pub fn from_hex(text: &str) -> Result<Self, InvalidFingerprint> {
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != 32 || !rest.is_empty() {
            return Err(InvalidFingerprint);
        }
        let mut bytes = [0; 32];
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = hex_digit(*high)? << 4 | hex_digit(*low)?;
        }
        Ok(Self(bytes))
    }
}

fn hex_digit(digit: u8) -> Result<u8, InvalidFingerprint> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(InvalidFingerprint),
    }
}

impl fmt::Display for Fingerprint {
    /// In one piece: a stored ledger has one in each entry, and formatting 32 bytes one by one was half of writing it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 64];
        let (pairs, _) = text.as_chunks_mut::<2>();
        for (byte, pair) in self.0.iter().zip(pairs) {
            *pair = [byte >> 4, byte & 0xf].map(|digit| DIGITS[usize::from(digit)]);
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Hex)
    }
}

/// Reads the digits where they lie.
struct Hex;

impl Visitor<'_> for Hex {
    type Value = Fingerprint;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("64 lower-case hex digits")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Fingerprint, E> {
        Fingerprint::from_hex(text).map_err(E::custom)
    }
}

/// Writes a value in the canonical form of RFC 8785 (JCS): no blanks, members sorted by the UTF-16 code units of their
/// names, no escape that JSON does not demand, numbers as ECMAScript prints them.
///
/// One deviation: an integer that fits `i64` or `u64` keeps all its digits, also beyond 2^53, where RFC 8785 would
/// round it to the next double and two different ids would look the same.
///
/// The result depends on the value alone. A number is read from its text, so `1`, `1.0` and `1e0` are one number also
/// where `arbitrary_precision` keeps them apart, and an integer too large for `u64` is a double in either case. Two
/// things are settled before a value comes here and are the caller's: a duplicate member (`serde_json` keeps the last),
/// and an `f32` turned into a [`Value`] without going through text, which is widened to its neighbour among the doubles
/// unless `arbitrary_precision` is on.
///
/// The function recurses as deep as the value is nested; what `serde_json` parsed is at most 128 deep.
///
/// ```
/// use mcp_tasks_core::ledger::canonical_json;
/// use serde_json::json;
///
/// let value = json!({"b": [1.0, 1e30, 9007199254740993_u64], "a": "€\n"});
/// assert_eq!(canonical_json(&value), r#"{"a":"€\n","b":[1,1e+30,9007199254740993]}"#);
/// ```
#[must_use]
pub fn canonical_json(value: &Value) -> String {
    let mut out = String::new();
    write_value(&mut out, value);
    out
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => {
            // Always sorted here: the map's own order is by UTF-8, or by insertion under `preserve_order`.
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            out.push('{');
            for (index, (name, member)) in members.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_string(out, name);
                out.push(':');
                write_value(out, member);
            }
            out.push('}');
        }
    }
}

fn write_number(out: &mut String, number: &Number) {
    match ExactNumber::of(number) {
        ExactNumber::Integer(integer) => out.push_str(&integer.to_string()),
        ExactNumber::Double(double) => out.push_str(ryu_js::Buffer::new().format_finite(double)),
        ExactNumber::OutOfRange => out.push_str(&number.to_string()),
    }
}

/// RFC 8785 escapes what JSON demands, in its shortest form, and nothing else.
fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\u{1f}' => {
                // Writing into a String does not fail.
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn canonical(text: &str) -> String {
        canonical_json(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn rfc_8785_section_3_2_2_sample() {
        let text = r#"{
            "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
            "literals": [null, true, false]
        }"#;
        let expected = r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#;
        assert_eq!(canonical(text), expected);
    }

    #[test]
    fn rfc_8785_section_3_2_3_members_sort_by_utf_16() {
        let text = r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#;
        assert_eq!(
            canonical(text),
            "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"\u{f6}\":7,\"\u{20ac}\":1,\"\u{1f600}\":5,\"\u{fb33}\":3}"
        );
    }

    #[test]
    fn rfc_8785_appendix_b_numbers() {
        let table = [
            (0x0000_0000_0000_0000, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0xc340_0000_0000_0000, "-9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0x41b3_de43_5555_5554, "333333333.33333325"),
            (0x41b3_de43_5555_5555, "333333333.3333333"),
            (0x41b3_de43_5555_5556, "333333333.3333334"),
            (0x41b3_de43_5555_5557, "333333333.33333343"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        ];
        for (bits, expected) in table {
            let double = f64::from_bits(bits);
            assert_eq!(canonical_json(&json!(double)), expected, "{bits:x}");
            // And the same from text, where `arbitrary_precision` keeps the spelling.
            assert_eq!(canonical(&format!("{double:e}")), expected, "{bits:x}");
        }
    }

    #[test]
    fn integers_keep_their_digits_and_spellings_of_one_number_are_one() {
        let table = [
            ("9007199254740993", "9007199254740993"),
            ("-9007199254740993", "-9007199254740993"),
            ("18446744073709551615", "18446744073709551615"),
            ("-9223372036854775808", "-9223372036854775808"),
            // Past u64 it is a double with and without `arbitrary_precision`.
            ("18446744073709551617", "18446744073709552000"),
            ("-9223372036854775809", "-9223372036854776000"),
            ("1.0", "1"),
            ("1e3", "1000"),
            ("1E+3", "1000"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("0.1000", "0.1"),
            ("1e-400", "0"),
            // Misread by one bit without `float_roundtrip`.
            ("31.245270191439438", "31.245270191439438"),
        ];
        for (text, expected) in table {
            assert_eq!(canonical(text), expected, "{text}");
        }
    }

    #[test]
    fn strings_are_escaped_where_json_demands_it_only() {
        let text: String = ('\0'..='\u{7f}').chain("ä€😀\u{2028}".chars()).collect();
        let written = canonical_json(&json!(text));
        assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
        assert!(written.starts_with(r#""\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e"#));
        assert!(written.ends_with("~\u{7f}ä€😀\u{2028}\""));
    }

    /// Golden: these stand in stored ledgers. A test that fails here means parked tasks that cannot resume.
    #[test]
    fn fingerprints_of_stored_ledgers_never_change() {
        let form = json!({
            "message": "12 min. Go?",
            "requestedSchema": {
                "type": "object",
                "properties": {"publish": {"type": "boolean"}, "id": {"type": "integer", "maximum": 9007199254740993_u64}},
                "required": ["publish"],
            },
            "ratio": 0.5,
        });
        let table = [
            (
                Fingerprint::of("step", "probe", None),
                "bfd404ae728086b614a5b0884dc3887a297f4ea5ef09b82b868a47c142d1cd39",
            ),
            (
                Fingerprint::of("step", "", None),
                "8b40f473ddf813b250b04d6c73e2df9a0b7bbf86a33e002e8c043337f477b6a1",
            ),
            (
                Fingerprint::of("step", "probe", Some(&Value::Null)),
                "e1d06d27ecb083ce282a55369d4af4b97c46a3b2ed1ac658d5c6856fa94efb5c",
            ),
            (
                Fingerprint::of("elicit", "elicit-0", Some(&form)),
                "87c15c18c28bf9d8c307e76d03809092c017573200f9649997b7da8e93ef9c68",
            ),
        ];
        for (fingerprint, expected) in table {
            assert_eq!(fingerprint.to_hex(), expected);
        }
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        let of = |kind: &str, name: &str| Fingerprint::of(kind, name, None);
        assert_ne!(of("step", "a"), of("ste", "pa"));
        assert_ne!(of("step", ""), of("", "step"));
        assert_ne!(of("s", "null"), Fingerprint::of("s", "", Some(&Value::Null)));
        assert_ne!(
            Fingerprint::of("s", "n", Some(&json!(1))),
            Fingerprint::of("s", "n", Some(&json!("1")))
        );
        assert_ne!(
            Fingerprint::of("s", "n", Some(&json!({}))),
            Fingerprint::of("s", "n", Some(&json!([])))
        );
    }

    #[test]
    fn hex_reads_back_and_nothing_else_does() {
        let fingerprint = Fingerprint::of("now", "", None);
        let hex = fingerprint.to_hex();
        assert_eq!(Fingerprint::from_hex(&hex), Ok(fingerprint));
        assert_eq!(format!("{fingerprint:?}"), format!("Fingerprint({hex})"));
        let json = serde_json::to_string(&fingerprint).unwrap();
        assert_eq!(json, format!("\"{hex}\""));
        assert_eq!(serde_json::from_str::<Fingerprint>(&json).unwrap(), fingerprint);
        let bad = [
            String::new(),
            hex[1..].to_owned(),
            format!("{hex}0"),
            format!("{hex}00"),
            "G".repeat(64),
            "F".repeat(64),
            "ä".repeat(32),
        ];
        for bad in bad {
            assert_eq!(Fingerprint::from_hex(&bad), Err(InvalidFingerprint), "{bad}");
            assert!(serde_json::from_value::<Fingerprint>(json!(bad)).is_err());
        }
    }
}
