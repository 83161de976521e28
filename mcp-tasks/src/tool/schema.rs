//! Input and output schemas, in the form that strict clients take.
//!
//! Schemars describes Rust types more closely than some clients tolerate. Here the root of an input schema is an object
//! with `properties` even when there are none, integer and float formats that JSON Schema does not define become bounds,
//! a schema is an object and never `true` or `false`, and definitions stand in `$defs` at the root.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::tool::parameter::{ToolArgument, is_optional};

/// The input schema of a tool, while its parameters are described one by one.
#[derive(Debug)]
pub struct InputSchema {
    generator: SchemaGenerator,
    properties: Map<String, Value>,
    required: Vec<Value>,
    all: Option<Schema>,
}

impl InputSchema {
    pub(crate) fn new() -> Self {
        Self {
            generator: settings().for_deserialize().into_generator(),
            properties: Map::new(),
            required: Vec::new(),
            all: None,
        }
    }

    /// Adds a parameter; its doc comment goes before the description its type may have.
    pub fn property<T: ToolArgument>(&mut self, name: &str, description: Option<&str>) {
        let mut schema = self.generator.subschema_for::<T>();
        if let Some(description) = description {
            schema
                .ensure_object()
                .insert("description".to_owned(), description.into());
        }
        self.properties.insert(name.to_owned(), schema.to_value());
        if !is_optional::<T>() {
            self.required.push(name.into());
        }
    }

    /// Uses the schema of one type for all arguments.
    pub fn all<T: ToolArgument>(&mut self) {
        self.all = Some(root::<T>(&mut self.generator));
    }

    /// The finished schema, or why it cannot be the schema of a tool.
    pub(crate) fn finish(mut self) -> Result<Map<String, Value>, String> {
        let schema = match self.all {
            Some(all) => all,
            None => {
                let mut object = Map::new();
                object.insert("type".to_owned(), "object".into());
                object.insert("properties".to_owned(), self.properties.into());
                if !self.required.is_empty() {
                    object.insert("required".to_owned(), self.required.into());
                }
                let definitions = self.generator.take_definitions(false);
                if !definitions.is_empty() {
                    object.insert("$defs".to_owned(), definitions.into());
                }
                object.into()
            }
        };
        let mut object = strict_root(schema);
        if object.get("type") != Some(&json!("object")) {
            let found = object
                .get("type")
                .map_or("no `type`".to_owned(), |found| format!("`type` {found}"));
            return Err(format!(
                "the schema of all arguments has to be an object and has {found} at its root; put the value into a field of a struct"
            ));
        }
        object.entry("properties").or_insert_with(|| json!({}));
        Ok(object)
    }
}

/// The output schema of a tool; stays empty for tools that return text or content.
#[derive(Debug, Default)]
pub struct OutputSchema {
    schema: Option<Map<String, Value>>,
}

impl OutputSchema {
    /// Takes the schema of the values that are returned as structured content.
    ///
    /// It describes what `Serialize` writes, which can differ from what `Deserialize` reads. Its root may be of any type:
    /// clients of earlier protocol revisions, which need an object, are not shown another one.
    pub fn structured<T: JsonSchema>(&mut self) {
        let schema = strict_root(root::<T>(&mut settings().for_serialize().into_generator()));
        // A schema that allows everything says nothing, and some validating clients refuse it.
        self.schema = (!schema.is_empty()).then_some(schema);
    }

    pub(crate) fn finish(self) -> Option<Map<String, Value>> {
        self.schema
    }
}

/// The properties that `T` requires.
pub(crate) fn required_properties<T: JsonSchema>() -> Vec<String> {
    let schema = root::<T>(&mut settings().for_deserialize().into_generator());
    let required = schema.get("required").and_then(Value::as_array);
    required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn settings() -> SchemaSettings {
    // 2020-12 is what a schema without `$schema` is, by the core specification.
    SchemaSettings::draft2020_12().with(|settings| settings.meta_schema = None)
}

/// The schema of one type with its definitions.
///
/// Schemars' own root schema points at itself with `"#"` where a type holds itself, and `"#"` means something else once a
/// client has put the schema into a larger document. So such a type is a definition, and the root a copy of it.
fn root<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = generator.subschema_for::<T>();
    let mut definitions = generator.take_definitions(false);
    let pointer = schema.get("$ref").and_then(Value::as_str).map(str::to_owned);
    if let Some((pointer, name)) = pointer.as_deref().and_then(|p| Some((p, p.strip_prefix("#/$defs/")?))) {
        let name = name.replace("~1", "/").replace("~0", "~");
        if let Some(definition) = definitions.remove(&name) {
            let used = |value: &Value| refers(value, pointer);
            if used(&definition) || definitions.values().any(used) {
                definitions.insert(name, definition.clone());
            }
            schema = definition.try_into().unwrap_or(schema);
        }
    }
    if !definitions.is_empty() {
        schema.ensure_object().insert("$defs".to_owned(), definitions.into());
    }
    schema
}

/// Whether there is a reference to this place anywhere inside.
fn refers(value: &Value, pointer: &str) -> bool {
    match value {
        Value::Object(members) => {
            members.get("$ref").is_some_and(|found| found == pointer)
                || members.values().any(|member| refers(member, pointer))
        }
        Value::Array(items) => items.iter().any(|item| refers(item, pointer)),
        _ => false,
    }
}

/// Makes a root schema strict. The name and the doc comment of the Rust type are noise to a model that reads a tool.
fn strict_root(mut schema: Schema) -> Map<String, Value> {
    Strict.transform(&mut schema);
    let mut object = std::mem::take(schema.ensure_object());
    for noise in ["$schema", "title", "description"] {
        object.remove(noise);
    }
    object
}

/// Makes a schema and all inside it strict.
#[derive(Debug, Clone)]
pub(crate) struct Strict;

impl Transform for Strict {
    fn transform(&mut self, schema: &mut Schema) {
        let Some(object) = schema.as_object_mut() else {
            // `true` becomes `{}`, `false` becomes `{"not": {}}`.
            schema.ensure_object();
            return;
        };
        bounds_for_format(object);
        // `additionalProperties: false` is the one boolean that every client knows, and some ask for.
        let closed = object.get("additionalProperties") == Some(&Value::Bool(false));
        transform_subschemas(self, schema);
        if closed {
            schema.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
    }
}

/// Replaces a format that names a Rust or OpenAPI number by the bounds it stands for.
fn bounds_for_format(object: &mut Map<String, Value>) {
    let bounds = match object.get("format").and_then(Value::as_str) {
        Some("int32") => Some((i64::from(i32::MIN), i64::from(i32::MAX))),
        Some("uint32") => Some((0, i64::from(u32::MAX))),
        // The small ones have their bounds from schemars, and those of 64 bits and more do not survive JavaScript.
        Some("int8" | "int16" | "int64" | "int128" | "int" | "float" | "double") => None,
        Some("uint8" | "uint16" | "uint64" | "uint128" | "uint") => None,
        _ => return,
    };
    object.remove("format");
    if let Some((minimum, maximum)) = bounds {
        object.entry("minimum").or_insert(minimum.into());
        object.entry("maximum").or_insert(maximum.into());
    }
}

#[cfg(test)]
mod tests;
