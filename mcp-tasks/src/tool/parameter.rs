//! What type a parameter of a tool can have, and when it may be absent.

use schemars::JsonSchema;
use serde::de::value::Error as ValueError;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};

/// A type a parameter of a tool can have: anything that decodes from JSON, has a JSON schema and owns what it holds.
///
/// It is implemented for every such type; derive `Deserialize` and `JsonSchema` for one of your own.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a tool",
    label = "not `Deserialize + JsonSchema + Send + 'static`",
    note = "derive `serde::Deserialize` and `schemars::JsonSchema` for a type of your own",
    note = "`ToolContext`, `State<T>`, `Caller` and `Args<T>` are known by these names: write them as they are, not an alias or another name"
)]
pub trait ToolArgument: DeserializeOwned + JsonSchema + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static> ToolArgument for T {}

/// Whether a parameter of this type may be absent: the type decodes from absence. So aliases, and types that read absence in
/// a way of their own, are right.
pub(crate) fn is_optional<T: DeserializeOwned>() -> bool {
    T::deserialize(Absent).is_ok()
}

/// Deserializes as serde does a field that is absent.
pub(crate) struct Absent;

impl<'de> Deserializer<'de> for Absent {
    type Error = ValueError;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ValueError> {
        Err(ValueError::custom("missing"))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        visitor.visit_none()
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
