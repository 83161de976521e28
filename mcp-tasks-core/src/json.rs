//! JSON kept as the text it goes out as.

use std::fmt;
use std::sync::Arc;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// One JSON value as text, shared when cloned.
///
/// A record holds arguments, answers and results as text rather than as `serde_json::Value`: the text is what a client
/// sent or will get, byte for byte (order of members, integers of any size), takes an eighth of the memory, and an
/// answer to a poll copies it instead of printing it anew.
///
/// ```
/// use mcp_tasks_core::Json;
///
/// let json: Json = serde_json::from_str(r#"{"b":18446744073709551616,"a":1}"#).unwrap();
/// assert_eq!(json.get(), r#"{"b":18446744073709551616,"a":1}"#);
/// ```
#[derive(Clone)]
pub struct Json(Arc<RawValue>);

impl Json {
    /// The JSON text of `value`.
    ///
    /// # Errors
    /// When `value` has no JSON form: a map whose keys are no strings, or a `Serialize` that fails of its own accord.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self::from)
    }

    /// The text.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Whether it is an object. Check it before a struct is decoded, because derived decoders also accept an array of the
    /// values of its members.
    pub(crate) fn is_object(&self) -> bool {
        // The text of a raw value begins with the value.
        self.get().starts_with('{')
    }

    /// Decodes the text.
    ///
    /// # Errors
    /// When the text does not fit `T`.
    pub fn decode<'de, T: Deserialize<'de>>(&'de self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.get())
    }
}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Self {
        Self(Arc::from(raw))
    }
}

impl PartialEq for Json {
    /// Equal text, which is stricter than an equal value.
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}

/// The JSON of a type of this crate: maps with string keys and scalars, which always have one.
pub(crate) fn to_json<T: Serialize>(value: &T) -> Json {
    Json::of(value).unwrap_or_else(|_| Json::from(RawValue::NULL.to_owned()))
}

/// Reads a value of this crate that is kept as text, without copying the text where the format has it in one piece.
pub(crate) fn deserialize_text<'de, D, T, E>(
    deserializer: D,
    expected: &'static str,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    E: fmt::Display,
{
    struct Text<P>(&'static str, P);

    impl<T, E: fmt::Display, P: FnOnce(&str) -> Result<T, E>> Visitor<'_> for Text<P> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }

        fn visit_str<F: serde::de::Error>(self, text: &str) -> Result<T, F> {
            (self.1)(text).map_err(F::custom)
        }
    }

    deserializer.deserialize_str(Text(expected, parse))
}
