//! From the JSON of a `requestedSchema` to fields.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

use super::check::{FieldKind, Range};
use super::format::Format;
use super::{Field, FormError};
use crate::number::ExactNumber;

pub(super) fn parse(json: &str) -> Result<Vec<Field>, FormError> {
    let Ordered::<Box<RawValue>>(members) = decode(json)?;
    let mut is_object = false;
    let mut properties = None;
    let mut required: Vec<String> = Vec::new();
    for (name, raw) in members {
        match name.as_str() {
            "type" => is_object = decode::<Value>(raw.get())? == "object",
            "properties" => properties = Some(decode::<Ordered<Value>>(raw.get())?.0),
            "required" => required = decode(raw.get())?,
            // Members a schema does not name are dropped from answers in any case.
            "$schema" | "additionalProperties" => {}
            annotation if is_annotation(annotation) => {}
            other => {
                return Err(form_error(format!("`{other}` is no keyword of forms; {ROOT_KEYWORDS}")));
            }
        }
    }
    if !is_object {
        return Err(form_error(format!("its `type` is not \"object\"; {ROOT_KEYWORDS}")));
    }
    let properties = properties.ok_or_else(|| form_error(format!("it has no `properties`; {ROOT_KEYWORDS}")))?;
    if let Some(unknown) = required
        .iter()
        .find(|name| !properties.iter().any(|(property, _)| property == *name))
    {
        return Err(form_error(format!(
            "it requires `{unknown}`, which is not among its properties"
        )));
    }
    properties
        .into_iter()
        .map(|(name, schema)| {
            let required = required.contains(&name);
            match parse_field(&schema) {
                Ok((kind, title)) => Ok(Field {
                    name,
                    title,
                    required,
                    kind,
                }),
                Err(problem) => Err(FormError::Field { field: name, problem }),
            }
        })
        .collect()
}

const ROOT_KEYWORDS: &str = "a form is an object with `type`, `properties` and `required`";

/// Keywords that say something about a schema and constrain nothing.
fn is_annotation(keyword: &str) -> bool {
    matches!(keyword, "title" | "description" | "$comment" | "examples") || keyword.starts_with("x-")
}

fn form_error(problem: String) -> FormError {
    FormError::Form { problem }
}

fn decode<T: DeserializeOwned>(json: &str) -> Result<T, FormError> {
    serde_json::from_str(json).map_err(|error| form_error(error.to_string()))
}

/// The kind and the title of a field, or what is wrong with its schema.
fn parse_field(schema: &Value) -> Result<(FieldKind, Option<String>), String> {
    let schema = schema.as_object().ok_or("its schema is not an object")?;
    if schema.contains_key("$ref") {
        return Err("`$ref` is not followed by clients; write the schema out in its place".to_owned());
    }
    let kind = match schema.get("type") {
        Some(Value::String(name)) => match name.as_str() {
            "string" => parse_string(schema)?,
            "number" | "integer" => parse_number(schema, name == "integer")?,
            "boolean" => {
                refuse_keywords_but(schema, &[])?;
                FieldKind::Boolean
            }
            "array" => parse_array(schema)?,
            "object" => {
                return Err("forms are flat; take the fields of the object into the form".to_owned());
            }
            other => return Err(format!("the type `{other}` is none of {TYPES}")),
        },
        Some(Value::Array(_)) => {
            return Err(format!(
                "`type` is a list and must be one of {TYPES}; an optional field is one that `required` leaves out"
            ));
        }
        _ => return Err(format!("it has no `type`, which must be one of {TYPES}")),
    };
    if let Some(default) = schema.get("default") {
        kind.check(default)
            .map_err(|reason| format!("its `default` does not fit it: it {reason}"))?;
    }
    text(schema, "description")?;
    Ok((kind, text(schema, "title")?.map(str::to_owned)))
}

const TYPES: &str = "`string`, `number`, `integer`, `boolean` and `array` (of choices)";

fn parse_string(schema: &Map<String, Value>) -> Result<FieldKind, String> {
    if schema.contains_key("oneOf") {
        refuse_keywords_but(schema, &["oneOf"])?;
        return titled_options(schema, "oneOf").map(FieldKind::OneOf);
    }
    if schema.contains_key("enum") {
        refuse_keywords_but(schema, &["enum", "enumNames"])?;
        let options = texts(schema, "enum")?;
        if schema.contains_key("enumNames") && texts(schema, "enumNames")?.len() != options.len() {
            return Err("`enumNames` and `enum` differ in length".to_owned());
        }
        return Ok(FieldKind::OneOf(options));
    }
    refuse_keywords_but(schema, &["minLength", "maxLength", "format"])?;
    let format = match text(schema, "format")? {
        Some(name) => Some(
            Format::parse(name)
                .ok_or_else(|| format!("the format `{name}` is none of `email`, `uri`, `date` and `date-time`"))?,
        ),
        None => None,
    };
    Ok(FieldKind::Text {
        length: range(schema, "minLength", "maxLength")?,
        format,
    })
}

fn parse_number(schema: &Map<String, Value>, whole: bool) -> Result<FieldKind, String> {
    refuse_keywords_but(schema, &["minimum", "maximum"])?;
    let (minimum, maximum) = (number(schema, "minimum")?, number(schema, "maximum")?);
    if let (Some(min), Some(max)) = (&minimum, &maximum)
        && ExactNumber::of(min)
            .compare(ExactNumber::of(max))
            .is_none_or(|order| order.is_gt())
    {
        return Err("`minimum` is above `maximum`, so no answer fits".to_owned());
    }
    Ok(FieldKind::Number {
        whole,
        minimum,
        maximum,
    })
}

fn parse_array(schema: &Map<String, Value>) -> Result<FieldKind, String> {
    refuse_keywords_but(schema, &["items", "minItems", "maxItems"])?;
    let items = schema
        .get("items")
        .and_then(Value::as_object)
        .ok_or("an array needs `items` with the choices, in `enum` or `anyOf`")?;
    let options = if items.contains_key("anyOf") {
        refuse_keywords_but(items, &["anyOf"])?;
        titled_options(items, "anyOf")?
    } else if items.contains_key("enum") {
        refuse_keywords_but(items, &["enum"])?;
        texts(items, "enum")?
    } else {
        return Err(
            "the `items` of an array are choices, in `enum` or `anyOf`; lists of anything else do not fit a form"
                .to_owned(),
        );
    };
    // `schema.ts` wants the type beside `enum` and has none beside `anyOf`.
    let typed = items.get("type").map(|kind| kind == "string");
    if !typed.unwrap_or(items.contains_key("anyOf")) {
        return Err("the `items` of an array are of the type `string`".to_owned());
    }
    Ok(FieldKind::SomeOf {
        options,
        count: range(schema, "minItems", "maxItems")?,
    })
}

/// Refuses every keyword but these, `type`, `default` and annotations.
fn refuse_keywords_but(schema: &Map<String, Value>, keywords: &[&str]) -> Result<(), String> {
    let known =
        |keyword: &str| matches!(keyword, "type" | "default") || is_annotation(keyword) || keywords.contains(&keyword);
    match schema.keys().find(|keyword| !known(keyword)) {
        Some(unknown) if keywords.is_empty() => Err(format!("`{unknown}` is no keyword of its kind of field")),
        Some(unknown) => Err(format!(
            "`{unknown}` is no keyword of its kind of field, which has `{}`",
            keywords.join("`, `")
        )),
        None => Ok(()),
    }
}

fn text<'a>(schema: &'a Map<String, Value>, keyword: &str) -> Result<Option<&'a str>, String> {
    match schema.get(keyword) {
        None => Ok(None),
        Some(value) => value
            .as_str()
            .map(Some)
            .ok_or_else(|| format!("`{keyword}` is not a text")),
    }
}

/// A list with at least one item.
fn non_empty_list<'a>(schema: &'a Map<String, Value>, keyword: &str) -> Option<&'a Vec<Value>> {
    schema.get(keyword)?.as_array().filter(|items| !items.is_empty())
}

fn texts(schema: &Map<String, Value>, keyword: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("`{keyword}` is not a list of texts with at least one in it");
    non_empty_list(schema, keyword)
        .ok_or_else(wrong)?
        .iter()
        .map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong))
        .collect()
}

fn titled_options(schema: &Map<String, Value>, keyword: &str) -> Result<Vec<String>, String> {
    let wrong =
        || format!("`{keyword}` is not a list of `{{\"const\": text, \"title\": text}}` with at least one in it");
    non_empty_list(schema, keyword)
        .ok_or_else(wrong)?
        .iter()
        .map(|item| {
            let option = item.as_object().ok_or_else(wrong)?;
            refuse_keywords_but(option, &["const", "title"])?;
            match (text(option, "const")?, text(option, "title")?) {
                (Some(value), Some(_)) => Ok(value.to_owned()),
                _ => Err(wrong()),
            }
        })
        .collect()
}

fn number(schema: &Map<String, Value>, keyword: &str) -> Result<Option<Number>, String> {
    match schema.get(keyword) {
        None => Ok(None),
        Some(Value::Number(number)) if ExactNumber::of(number) != ExactNumber::OutOfRange => Ok(Some(number.clone())),
        Some(_) => Err(format!("`{keyword}` is not a number")),
    }
}

fn range(schema: &Map<String, Value>, min: &str, max: &str) -> Result<Range, String> {
    let bound = |keyword: &str| match number(schema, keyword)?.map(|number| ExactNumber::of(&number).integer()) {
        None => Ok(None),
        Some(whole) => match whole.and_then(|whole| u64::try_from(whole).ok()) {
            Some(whole) => Ok(Some(whole)),
            None => Err(format!("`{keyword}` is not a whole number from 0 on")),
        },
    };
    let range = Range {
        min: bound(min)?,
        max: bound(max)?,
    };
    if range.is_empty() {
        return Err(format!("`{min}` is above `{max}`, so no answer fits"));
    }
    Ok(range)
}

/// The members of an object in the order of the text, which a map of `serde_json` keeps under `preserve_order` only.
struct Ordered<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Ordered<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<T>(std::marker::PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = Ordered<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members: Vec<(String, T)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, T>()? {
                    // Readers disagree on which of two wins, so client and server might ask different things.
                    if members.iter().any(|(known, _)| *known == name) {
                        return Err(A::Error::custom(format_args!("`{name}` is there twice")));
                    }
                    members.push((name, value));
                }
                Ok(Ordered(members))
            }
        }

        deserializer.deserialize_map(Members(std::marker::PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(schema: &str) -> Result<Field, FormError> {
        let json = format!(r#"{{"type":"object","properties":{{"f":{schema}}},"required":["f"]}}"#);
        parse(&json).map(|mut fields| fields.remove(0))
    }

    #[test]
    fn every_kind_of_the_specification_is_taken() {
        for schema in [
            r#"{"type":"string","title":"Display Name","description":"d","minLength":3,"maxLength":50,"format":"email","default":"user@example.com"}"#,
            r#"{"type":"string","format":"date-time","x-order":1,"$comment":"c","examples":[1]}"#,
            r#"{"type":"number","minimum":0,"maximum":100.5,"default":50}"#,
            r#"{"type":"integer","minimum":-9223372036854775808,"maximum":18446744073709551615}"#,
            r#"{"type":"boolean","default":false}"#,
            r##"{"type":"string","enum":["Red","Green"],"default":"Red"}"##,
            r##"{"type":"string","enum":["r","g"],"enumNames":["Red","Green"]}"##,
            r##"{"type":"string","oneOf":[{"const":"#FF0000","title":"Red"},{"const":"#00FF00","title":"Green"}],"default":"#FF0000"}"##,
            r#"{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["a","b"]},"default":["a","b"]}"#,
            r#"{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}"#,
        ] {
            let field = one(schema).unwrap_or_else(|error| panic!("{schema}: {error}"));
            assert!(field.required);
        }
    }

    #[test]
    fn what_no_form_can_ask_is_refused_by_name() {
        let table = [
            (r#"{"type":"object","properties":{}}"#, "forms are flat"),
            (
                r#"{"type":"array","items":{"type":"string"}}"#,
                "`items` of an array are choices",
            ),
            (
                r#"{"type":"array","items":{"type":"object","properties":{}}}"#,
                "`items` of an array are choices",
            ),
            (
                r#"{"type":"array","items":{"type":"integer","enum":["1"]}}"#,
                "of the type `string`",
            ),
            (r#"{"type":"array","items":{"enum":["a"]}}"#, "of the type `string`"),
            (r#"{"type":"array"}"#, "needs `items`"),
            (r##"{"$ref":"#/$defs/Codec"}"##, "`$ref` is not followed"),
            (
                r#"{"type":["integer","null"]}"#,
                "an optional field is one that `required` leaves out",
            ),
            (r#"{"type":"null"}"#, "the type `null` is none of"),
            (r#"{"enum":["a"]}"#, "it has no `type`"),
            (r#"{}"#, "it has no `type`"),
            (r#"true"#, "its schema is not an object"),
            (r#"{"type":"string","pattern":"^a"}"#, "`pattern` is no keyword"),
            (r#"{"type":"string","format":"ipv4"}"#, "the format `ipv4`"),
            (
                r#"{"type":"string","minLength":-1}"#,
                "`minLength` is not a whole number from 0 on",
            ),
            (
                r#"{"type":"string","minLength":1.5}"#,
                "`minLength` is not a whole number from 0 on",
            ),
            (
                r#"{"type":"string","minLength":3,"maxLength":2}"#,
                "`minLength` is above `maxLength`",
            ),
            (r#"{"type":"integer","format":"uint32"}"#, "`format` is no keyword"),
            (
                r#"{"type":"number","exclusiveMinimum":0}"#,
                "which has `minimum`, `maximum`",
            ),
            (r#"{"type":"number","minimum":"0"}"#, "`minimum` is not a number"),
            (
                r#"{"type":"number","minimum":2,"maximum":1.5}"#,
                "`minimum` is above `maximum`",
            ),
            (
                r#"{"type":"integer","default":1.5}"#,
                "its `default` does not fit it: it must be a whole number",
            ),
            (r#"{"type":"boolean","const":true}"#, "`const` is no keyword"),
            (r#"{"type":"string","enum":[]}"#, "at least one in it"),
            (r#"{"type":"string","enum":["a",1]}"#, "not a list of texts"),
            (
                r#"{"type":"string","enum":["a"],"enumNames":[]}"#,
                "`enumNames` is not a list",
            ),
            (
                r#"{"type":"string","enum":["a","b"],"enumNames":["A"]}"#,
                "differ in length",
            ),
            (
                r#"{"type":"string","oneOf":[{"const":"a"}]}"#,
                "`oneOf` is not a list of",
            ),
            (
                r#"{"type":"string","oneOf":[{"const":1,"title":"One"}]}"#,
                "`const` is not a text",
            ),
            (r#"{"type":"string","title":1}"#, "`title` is not a text"),
        ];
        for (schema, expected) in table {
            let error = one(schema).expect_err(schema).to_string();
            assert!(error.starts_with("the field `f` does not fit"), "{schema}: {error}");
            assert!(error.contains(expected), "{schema}: {error}");
        }
    }

    #[test]
    fn a_form_is_an_object_with_properties() {
        let table = [
            ("", "EOF"),
            ("[]", "expected an object"),
            ("{}", "`type` is not \"object\""),
            (r#"{"type":"string"}"#, "`type` is not \"object\""),
            (r#"{"type":"object"}"#, "no `properties`"),
            (r#"{"type":"object","properties":[]}"#, "expected an object"),
            (r#"{"type":"object","properties":{},"required":["a"]}"#, "requires `a`"),
            (
                r#"{"type":"object","properties":{},"required":"a"}"#,
                "expected a sequence",
            ),
            (
                r#"{"type":"object","properties":{},"allOf":[]}"#,
                "`allOf` is no keyword",
            ),
            (
                r#"{"type":"object","properties":{"a":{"type":"boolean"},"a":{"type":"string"}}}"#,
                "`a` is there twice",
            ),
        ];
        for (schema, expected) in table {
            let error = parse(schema).expect_err(schema).to_string();
            assert!(
                error.starts_with("this is not the schema of an elicitation form: "),
                "{error}"
            );
            assert!(error.contains(expected), "{schema}: {error}");
        }
        let empty = r#"{"$schema":"s","type":"object","title":"t","properties":{},"additionalProperties":false}"#;
        assert_eq!(parse(empty), Ok(Vec::new()));
        assert!(parse(&format!("{}1", "[".repeat(100_000))).is_err());
    }
}
