//! Requests of 2026-07-28, decoded without a copy where they are what clients ordinarily send.
//!
//! A request that does not decode here may still be a good one, or get a better error: it is left to rmcp. So these types
//! accept less than rmcp's do, and never more: a body that rmcp refuses does not decode.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

pub(super) use crate::host::extension::REVISION;

/// An object and nothing else: a derived `Deserialize` accepts a list of the members too, which is no message.
#[derive(Debug)]
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_map(ObjectVisitor(PhantomData)).map(Self)
    }
}

/// The request that a body is.
pub(super) fn decode<'a, P: Deserialize<'a>>(body: &'a str) -> Option<Request<'a, P>> {
    let Object(request) = serde_json::from_str(body).ok()?;
    Some(request)
}

/// A request, with the params of its method.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request<'a, P> {
    #[serde(rename = "jsonrpc")]
    _version: Version,
    #[serde(borrow)]
    pub(super) id: Id<'a>,
    #[serde(borrow)]
    pub(super) method: Cow<'a, str>,
    pub(super) params: Object<P>,
}

#[derive(Debug, Deserialize)]
enum Version {
    #[serde(rename = "2.0")]
    V2,
}

/// The id of a request, which is echoed with its type.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub(super) enum Id<'a> {
    Number(i64),
    Text(Cow<'a, str>),
}

impl Id<'_> {
    pub(super) fn into_owned(self) -> Id<'static> {
        match self {
            Self::Number(number) => Id::Number(number),
            Self::Text(text) => Id::Text(text.into_owned().into()),
        }
    }
}

#[cfg(feature = "stdio")]
impl From<&rmcp::model::RequestId> for Id<'static> {
    fn from(id: &rmcp::model::RequestId) -> Self {
        match id {
            rmcp::model::RequestId::Number(number) => Self::Number(*number),
            rmcp::model::RequestId::String(text) => Self::Text(text.to_string().into()),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Id<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // As text, so that it does not depend on serde_json's features for numbers.
        let text = <&RawValue>::deserialize(deserializer)?.get();
        let id = if text.starts_with('"') {
            serde_json::from_str(text).map(|Str(text)| Id::Text(text))
        } else {
            serde_json::from_str(text).map(Id::Number)
        };
        id.map_err(D::Error::custom)
    }
}

/// The `_meta` of a request.
#[derive(Debug)]
pub(super) struct Meta<'a> {
    pub(super) version: Cow<'a, str>,
    pub(super) capabilities: &'a RawValue,
    pub(super) has_progress_token: bool,
    pub(super) traceparent: Option<Cow<'a, str>>,
    pub(super) tracestate: Option<Cow<'a, str>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Meta<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MetaVisitor;
        impl<'de> Visitor<'de> for MetaVisitor {
            type Value = Meta<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let (mut version, mut capabilities) = (None, None);
                let (mut token, mut parent, mut state) = (None, None, None);
                while let Some(Str(key)) = map.next_key()? {
                    match &*key {
                        "io.modelcontextprotocol/protocolVersion" => {
                            set_once(&mut version, map.next_value::<Text<'_>>()?)?
                        }
                        "io.modelcontextprotocol/clientCapabilities" => set_once(&mut capabilities, map.next_value()?)?,
                        "progressToken" => set_once(&mut token, map.next_value::<Checked>()?)?,
                        "traceparent" => set_once(&mut parent, map.next_value::<Text<'_>>()?)?,
                        "tracestate" => set_once(&mut state, map.next_value::<Text<'_>>()?)?,
                        _ => {
                            map.next_value::<Checked>()?;
                        }
                    }
                }
                Ok(Meta {
                    version: version
                        .and_then(|version| version.0)
                        .ok_or_else(|| Error::missing_field("protocolVersion"))?,
                    capabilities: capabilities.ok_or_else(|| Error::missing_field("clientCapabilities"))?,
                    has_progress_token: token.is_some(),
                    traceparent: parent.and_then(|text| text.0),
                    tracestate: state.and_then(|text| text.0),
                })
            }
        }
        deserializer.deserialize_map(MetaVisitor)
    }
}

/// A request with a member that comes twice is left to rmcp.
fn set_once<T, E: Error>(slot: &mut Option<T>, value: T) -> Result<(), E> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::custom("a member comes twice")),
    }
}

/// Text, borrowed where nothing in it is escaped; serde copies every bare [`Cow`].
#[derive(Debug, Deserialize)]
pub(super) struct Str<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// Any JSON value, kept if it is text.
#[derive(Debug)]
struct Text<'a>(Option<Cow<'a, str>>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyVisitor).map(Text)
    }
}

/// Any JSON value, read as thoroughly as if it were kept: text with half a surrogate, a number that no machine holds, or
/// nesting without an end make the whole body one that cannot be decoded, and serde's own `IgnoredAny` passes over them.
#[derive(Debug)]
pub(super) struct Checked;

impl<'de> Deserialize<'de> for Checked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyVisitor).map(|_| Self)
    }
}

struct AnyVisitor;

impl<'de> Visitor<'de> for AnyVisitor {
    type Value = Option<Cow<'de, str>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Some(text.into()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(text.to_owned().into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<Checked>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<Checked, Checked>()?.is_some() {}
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(text: &str) -> Result<Meta<'_>, serde_json::Error> {
        serde_json::from_str(text)
    }

    const VERSION: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    const CAPABILITIES: &str = r#""io.modelcontextprotocol/clientCapabilities":{}"#;

    #[test]
    fn members_that_are_not_known_are_read_all_the_same() {
        let with = |member: &str| format!("{{{VERSION},{member},{CAPABILITIES}}}");
        for good in [
            r#""x":null"#,
            r#""x":[1,-1,1.5,true,"text",{"a":{"b":"\ud83d\ude00"}}]"#,
            r#""progressToken":"t""#,
            r#""traceparent":7"#,
        ] {
            meta(&with(good)).unwrap();
        }
        for bad in [
            r#""x":"\ud800""#,
            r#""x":{"\udc00":1}"#,
            r#""x":1e999"#,
            r#""x":[1,]"#,
            &format!(r#""x":{}{}"#, "[".repeat(200), "]".repeat(200)),
            VERSION,
            CAPABILITIES,
        ] {
            meta(&with(bad)).unwrap_err();
        }
    }

    #[test]
    fn an_id_keeps_its_type() {
        for (text, shown) in [
            ("0", "0"),
            ("-3", "-3"),
            (r#""0""#, r#""0""#),
            (r#""\u0041""#, r#""A""#),
            (r#""""#, r#""""#),
        ] {
            let id: Id<'_> = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&id).unwrap(), shown);
        }
        for text in ["1.0", "9223372036854775808", "null", "[]", "true"] {
            serde_json::from_str::<Id<'_>>(text).unwrap_err();
        }
    }
}
