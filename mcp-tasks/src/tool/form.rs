//! Forms: the questions a tool can put to a person, as Rust types.
//!
//! MCP allows flat forms: an object whose properties are text, numbers, truth values and choices. `#[derive(ElicitForm)]`
//! holds a type to that at compile time, on the field that does not fit; [`form_schema`] writes the schema the client
//! is shown.

use std::fmt;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::Transform;
use serde::de::value::Error as ValueError;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde_json::{Map, Value, json};

use crate::tool::schema::Strict;

/// A struct that can be asked for as a form.
///
/// Derive it beside `Deserialize` and `JsonSchema`. Doc comments describe the fields, serde attributes such as `rename`
/// and `default` are honoured, and an `Option` need not be filled in.
///
/// ```
/// use mcp_tasks::ElicitForm;
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema, ElicitForm)]
/// struct Publish {
///     /// Where it goes
///     channel: Channel,
///     note: Option<String>,
/// }
///
/// #[derive(Deserialize, JsonSchema, ElicitForm)]
/// enum Channel {
///     Beta,
///     Stable,
/// }
/// ```
///
/// A field that is itself a struct is refused, on the field:
///
/// ```compile_fail
/// # use mcp_tasks::ElicitForm;
/// # use schemars::JsonSchema;
/// # use serde::Deserialize;
/// #[derive(Deserialize, JsonSchema)]
/// struct Address { city: String }
///
/// #[derive(Deserialize, JsonSchema, ElicitForm)]
/// struct Order { address: Address }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a form",
    label = "`ElicitForm` is not derived for it",
    note = "write `#[derive(serde::Deserialize, schemars::JsonSchema, mcp_tasks::ElicitForm)]` on the struct"
)]
pub trait ElicitForm: DeserializeOwned + JsonSchema + Send + 'static {}

/// A type a field of a form can have.
///
/// Implement it for a type of your own that is text, a number or a truth value in JSON, such as a newtype with limits
/// from schemars attributes. What its schema says beyond that is left out of the form.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a form",
    label = "a form is flat: text, numbers, `bool`, choices, lists of choices, and `Option`s of these",
    note = "put the fields of a nested struct into the form itself",
    note = "derive `ElicitForm` for an enum without data to make it a choice"
)]
pub trait ElicitField: JsonSchema {}

/// An enum without data whose variants a person can choose from, one or several.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a choice",
    label = "a list in a form holds choices: enums without data that derive `ElicitForm`",
    note = "ask for one text and split it, or ask several times, where a free list is needed"
)]
pub trait ElicitChoice: ElicitField {}

macro_rules! fields {
    ($($type:ty)*) => {
        $(impl ElicitField for $type {})*
    };
}

fields!(String Box<str> char bool u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);

impl<T: ElicitField> ElicitField for Option<T> {}

impl<T: ElicitChoice> ElicitField for Vec<T> {}

/// The schema of a form as the client is shown it: flat, and nothing in it that MCP does not define for forms.
///
/// The properties stand in the order of the fields where `serde_json` keeps an order at all; [`form_schema_json`] keeps
/// it always.
#[must_use]
pub fn form_schema<T: ElicitForm>() -> Value {
    let (properties, required, description) = form_parts::<T>();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    if let Some(description) = description {
        schema.insert("description".to_owned(), description);
    }
    schema.insert("properties".to_owned(), Value::Object(properties.into_iter().collect()));
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
    Value::Object(schema)
}

/// [`form_schema`] as JSON text, the properties in the order of the fields, which is the order a person fills them in.
#[must_use]
pub fn form_schema_json<T: ElicitForm>() -> String {
    let (properties, required, description) = form_parts::<T>();
    let mut text = String::from(r#"{"type":"object","#);
    if let Some(description) = description {
        text.push_str(&format!(r#""description":{description},"#));
    }
    let members: Vec<_> = properties
        .into_iter()
        .map(|(name, schema)| format!("{}:{schema}", Value::String(name)))
        .collect();
    text.push_str(&format!(r#""properties":{{{}}}"#, members.join(",")));
    if !required.is_empty() {
        text.push_str(&format!(r#","required":{}"#, Value::Array(required)));
    }
    text.push('}');
    text
}

/// The properties in the order of the fields, the required names likewise, and the doc comment of the form.
fn form_parts<T: ElicitForm>() -> (Vec<(String, Value)>, Vec<Value>, Option<Value>) {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.meta_schema = None;
            settings.inline_subschemas = true;
        })
        .for_deserialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    Strict.transform(&mut schema);
    let mut root = std::mem::take(schema.ensure_object());
    let required: Vec<Value> = match root.remove("required") {
        Some(Value::Array(names)) => names,
        _ => Vec::new(),
    };
    let mut described = match root.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    let mut order = field_names::<T>();
    order.retain(|name| described.contains_key(*name));
    let mut properties: Vec<(String, Value)> = Vec::with_capacity(described.len());
    for name in order {
        if let Some(field) = described.remove(name) {
            properties.push((name.to_owned(), flat(field)));
        }
    }
    // A derived `Deserialize` leaves none; one that is written by hand need not name its fields.
    properties.extend(described.into_iter().map(|(name, field)| (name, flat(field))));
    (properties, required, root.remove("description"))
}

/// One property, reduced to the members MCP defines for its type.
fn flat(schema: Value) -> Value {
    let schema = without_null(schema);
    let Value::Object(mut schema) = schema else {
        return schema;
    };
    let mut flat = Map::new();
    let keep = |flat: &mut Map<String, Value>, schema: &mut Map<String, Value>, names: &[&str]| {
        for name in names {
            if let Some(value) = schema.remove(*name).filter(|value| !value.is_null()) {
                flat.insert((*name).to_owned(), value);
            }
        }
    };
    if let Some(choices) = choices(&schema) {
        flat.insert("type".to_owned(), "string".into());
        keep(&mut flat, &mut schema, &["title", "description"]);
        let (member, choices) = choices.written("oneOf");
        flat.insert(member.to_owned(), choices);
        keep(&mut flat, &mut schema, &["default"]);
        return Value::Object(flat);
    }
    let kind = schema
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    keep(&mut flat, &mut schema, &["type", "title", "description"]);
    match kind.as_str() {
        "string" => {
            if let Some(Value::String(format)) = schema.get("format")
                && !["email", "uri", "date", "date-time"].contains(&format.as_str())
            {
                schema.remove("format");
            }
            keep(&mut flat, &mut schema, &["minLength", "maxLength", "format"]);
        }
        "integer" | "number" => keep(&mut flat, &mut schema, &["minimum", "maximum"]),
        "array" => {
            keep(&mut flat, &mut schema, &["minItems", "maxItems"]);
            let items = schema.remove("items").unwrap_or_default();
            let items = match items.as_object().and_then(choices) {
                Some(choices) => {
                    let titled = choices.titled();
                    let (member, choices) = choices.written("anyOf");
                    if titled {
                        json!({ member: choices })
                    } else {
                        json!({ "type": "string", member: choices })
                    }
                }
                None => items,
            };
            flat.insert("items".to_owned(), items);
        }
        _ => {}
    }
    keep(&mut flat, &mut schema, &["default"]);
    Value::Object(flat)
}

/// An answer leaves out what it does not give, so the `null` of an `Option` has no place in a form.
fn without_null(schema: Value) -> Value {
    let Value::Object(mut schema) = schema else {
        return schema;
    };
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(branches)) = schema.get_mut("anyOf") {
        branches.retain(|branch| branch.get("type") != Some(&json!("null")));
        if branches.len() == 1
            && let Some(Value::Object(inner)) = branches.pop()
        {
            schema.remove("anyOf");
            // The description of the field, which stands outside, is closer than that of its type.
            for (name, value) in inner {
                schema.entry(name).or_insert(value);
            }
        }
    }
    Value::Object(schema)
}

/// The values of an enum, each with its doc comment.
struct Choices(Vec<(Value, Option<Value>)>);

impl Choices {
    fn titled(&self) -> bool {
        self.0.iter().any(|(_, title)| title.is_some())
    }

    /// As `enum`, or with titles under the member that MCP has for them.
    fn written(self, titles: &'static str) -> (&'static str, Value) {
        if self.titled() {
            let each = |(value, title): (Value, Option<Value>)| {
                let title = title.unwrap_or_else(|| value.clone());
                json!({ "const": value, "title": title })
            };
            (titles, self.0.into_iter().map(each).collect())
        } else {
            ("enum", self.0.into_iter().map(|(value, _)| value).collect())
        }
    }
}

fn choices(schema: &Map<String, Value>) -> Option<Choices> {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return Some(Choices(values.iter().map(|value| (value.clone(), None)).collect()));
    }
    if let Some(value) = schema.get("const") {
        let title = schema.get("description").cloned();
        return Some(Choices(vec![(value.clone(), title)]));
    }
    // Schemars puts the variants with a doc comment beside the plain ones, each in a branch of its own.
    let branches = schema.get("oneOf")?.as_array()?;
    let mut all = Vec::new();
    for branch in branches {
        all.extend(choices(branch.as_object()?)?.0);
    }
    Some(Choices(all))
}

/// The fields of `T` as they are called in JSON, in their order, aliases included.
///
/// The schema does not keep the order unless a feature of `serde_json` is on, but a derived `Deserialize` names its
/// fields, in order, to the format it reads from. This format keeps the names and reads nothing.
fn field_names<T: DeserializeOwned>() -> Vec<&'static str> {
    let mut names: &'static [&'static str] = &[];
    let _ = T::deserialize(FieldNames(&mut names));
    names.to_vec()
}

struct FieldNames<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = ValueError;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ValueError> {
        Err(ValueError::custom("not a struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, ValueError> {
        *self.0 = fields;
        Err(ValueError::custom("only the names were wanted"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

impl fmt::Debug for FieldNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FieldNames")
    }
}

#[cfg(test)]
mod tests;
