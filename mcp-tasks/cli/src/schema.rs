//! What a JSON Schema says of one value: its types, its choices, and whether a value fits.

use std::fmt;
use std::sync::Arc;

use jsonschema::Validator;
use serde_json::{Map, Number, Value, json};

/// How many references lead to a schema at most. More go round in a circle.
const MAX_REFERENCES: usize = 16;

/// The schema of a field or an argument, with its references resolved.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) required: bool,
    pub(crate) schema: Value,
    check: Check,
}

/// One of several values to choose from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    pub(crate) value: Value,
    pub(crate) title: Option<String>,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = plain(&self.value);
        f.write_str(&crate::text::line(self.title.as_deref().unwrap_or(&plain)))
    }
}

/// Text as it is, everything else as JSON.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Checks values. A schema that makes no sense checks nothing: the server has the last word.
#[derive(Debug, Clone)]
pub(crate) struct Check(Option<Arc<Validator>>);

impl Check {
    pub(crate) fn new(schema: &Value) -> Self {
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .should_ignore_unknown_formats(true)
            .build(schema);
        Self(validator.ok().map(Arc::new))
    }

    /// What is wrong, each with the place where it is.
    pub(crate) fn problems(&self, value: &Value) -> Vec<String> {
        let Some(validator) = &self.0 else { return Vec::new() };
        let told = |error: jsonschema::ValidationError<'_>| match error.instance_path().as_str() {
            "" => error.to_string(),
            place => format!("{}: {error}", place.trim_start_matches('/')),
        };
        validator.iter_errors(value).map(told).collect()
    }
}

/// The schema that references lead to.
fn resolved<'a>(root: &'a Value, mut schema: &'a Value) -> &'a Value {
    for _ in 0..MAX_REFERENCES {
        let target = schema.get("$ref").and_then(Value::as_str);
        match target.and_then(|target| target.strip_prefix('#')) {
            Some(pointer) => match root.pointer(pointer) {
                Some(next) => schema = next,
                None => return schema,
            },
            None => return schema,
        }
    }
    schema
}

/// The properties of an object schema, in its order.
pub(crate) fn fields(root: &Value) -> Vec<Field> {
    let required: Vec<&str> = root
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let Some(properties) = root.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let field = |(name, property): (&String, &Value)| {
        let target = resolved(root, property);
        let mut schema = match target {
            Value::Object(schema) => schema.clone(),
            _ => Map::new(),
        };
        // What stands beside a reference describes this property.
        for (key, value) in property
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(key, _)| *key != "$ref")
        {
            schema.insert(key.clone(), value.clone());
        }
        let mut whole = schema.clone();
        for definitions in ["$defs", "definitions"] {
            if let Some(found) = root.get(definitions) {
                whole.insert(definitions.to_owned(), found.clone());
            }
        }
        Field {
            name: name.clone(),
            required: required.contains(&name.as_str()),
            schema: Value::Object(schema),
            check: Check::new(&Value::Object(whole)),
        }
    };
    properties.iter().map(field).collect()
}

/// The types that a schema allows; none if it allows all, or does not say.
fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        _ => {
            let branches = ["anyOf", "oneOf"]
                .iter()
                .filter_map(|member| schema.get(*member)?.as_array());
            branches.flatten().flat_map(types).collect()
        }
    }
}

/// The values to choose from, where there are such.
pub(crate) fn choices(schema: &Value) -> Option<Vec<Choice>> {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let titles = schema.get("enumNames").and_then(Value::as_array);
        let title = |at: usize| Some(titles?.get(at)?.as_str()?.to_owned());
        let choice = |(at, value): (usize, &Value)| Choice {
            value: value.clone(),
            title: title(at),
        };
        return Some(values.iter().enumerate().map(choice).collect());
    }
    let branches = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
    let choice = |branch: &Value| {
        Some(Choice {
            value: branch.get("const")?.clone(),
            title: branch.get("title").and_then(Value::as_str).map(str::to_owned),
        })
    };
    branches.iter().map(choice).collect()
}

impl Field {
    pub(crate) fn is(&self, kind: &str) -> bool {
        // `null` beside another type says that it may be left out.
        let mut types = types(&self.schema);
        types.retain(|name| *name != "null");
        types == [kind]
    }

    pub(crate) fn choices(&self) -> Option<Vec<Choice>> {
        choices(&self.schema)
    }

    /// The choices of an array's elements.
    pub(crate) fn many_choices(&self) -> Option<Vec<Choice>> {
        self.is("array").then(|| choices(self.schema.get("items")?)).flatten()
    }

    pub(crate) fn default(&self) -> Option<&Value> {
        self.schema.get("default").filter(|value| !value.is_null())
    }

    pub(crate) fn text(&self, member: &str) -> Option<&str> {
        self.schema.get(member)?.as_str()
    }

    /// What is wrong with a value, or nothing.
    pub(crate) fn problems(&self, value: &Value) -> Vec<String> {
        self.check.problems(value)
    }

    /// What is expected, in a few words.
    pub(crate) fn expected(&self) -> String {
        expected(&self.schema)
    }

    /// Reads what the user typed.
    pub(crate) fn read(&self, typed: &str) -> Result<Value, String> {
        let value = read(&self.schema, typed).ok_or_else(|| format!("{} is expected", self.expected()))?;
        match self.problems(&value).as_slice() {
            [] => Ok(value),
            problems => Err(problems.join("; ")),
        }
    }

    /// Reads several values for one argument: the elements of an array.
    pub(crate) fn read_all(&self, typed: &[String]) -> Result<Value, String> {
        if let [one] = typed {
            // An array with one element may be written without its brackets.
            if !self.is("array") || one.trim_start().starts_with('[') {
                return self.read(one);
            }
        } else if !self.is("array") {
            return Err(format!(
                "it is given {} times, and {} is expected",
                typed.len(),
                self.expected()
            ));
        }
        let items = self.schema.get("items").cloned().unwrap_or(json!({}));
        let element = |typed: &String| read(&items, typed).ok_or_else(|| format!("{} is expected", expected(&items)));
        let value = typed.iter().map(element).collect::<Result<Value, _>>()?;
        match self.problems(&value).as_slice() {
            [] => Ok(value),
            problems => Err(problems.join("; ")),
        }
    }
}

fn expected(schema: &Value) -> String {
    if let Some(choices) = choices(schema) {
        let values: Vec<_> = choices.iter().map(|choice| plain(&choice.value)).collect();
        return format!("one of {}", values.join(", "));
    }
    let mut words: Vec<&str> = types(schema)
        .into_iter()
        .filter_map(|kind| match kind {
            "string" => Some("text"),
            "integer" => Some("a whole number"),
            "number" => Some("a number"),
            "boolean" => Some("true or false"),
            "array" => Some("a JSON array"),
            "object" => Some("a JSON object"),
            _ => None,
        })
        .collect();
    words.dedup();
    match words.is_empty() {
        true => "a JSON value or text".to_owned(),
        false => words.join(", or "),
    }
}

/// The value that typed text is, by the types of the schema; text comes last, since everything is text.
fn read(schema: &Value, typed: &str) -> Option<Value> {
    if let Some(choices) = choices(schema) {
        let chosen = choices.iter().find(|choice| plain(&choice.value) == typed);
        let titled = || choices.iter().find(|choice| choice.title.as_deref() == Some(typed));
        return chosen.or_else(titled).map(|choice| choice.value.clone());
    }
    let types = types(schema);
    let word = typed.trim();
    let parsed = || serde_json::from_str::<Value>(word).ok();
    if types.is_empty() {
        return Some(parsed().unwrap_or_else(|| typed.into()));
    }
    let allowed = |kind: &str| types.contains(&kind);
    if allowed("integer")
        && let Some(number) = integer(word)
    {
        return Some(number.into());
    }
    if allowed("number")
        && let Some(number) = number(word)
    {
        return Some(number.into());
    }
    if allowed("boolean") {
        match word.to_ascii_lowercase().as_str() {
            "true" | "yes" => return Some(true.into()),
            "false" | "no" => return Some(false.into()),
            _ => {}
        }
    }
    if (allowed("array") || allowed("object"))
        && let Some(value) = parsed()
        && ((value.is_array() && allowed("array")) || (value.is_object() && allowed("object")))
    {
        return Some(value);
    }
    if allowed("string") {
        return Some(typed.into());
    }
    (allowed("null") && word == "null").then_some(Value::Null)
}

fn integer(word: &str) -> Option<Number> {
    word.parse::<i64>()
        .map(Number::from)
        .or_else(|_| word.parse::<u64>().map(Number::from))
        .ok()
}

fn number(word: &str) -> Option<Number> {
    integer(word).or_else(|| Number::from_f64(word.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(schema: Value) -> Field {
        let root = json!({
            "properties": {"f": schema},
            "$defs": {"colour": {"type": "string", "enum": ["red", "green"]}},
        });
        fields(&root).remove(0)
    }

    #[test]
    fn text_is_read_as_what_the_schema_wants() {
        let read = |schema: Value, typed: &str| field(schema).read(typed);
        assert_eq!(
            read(json!({"type": "integer"}), "18446744073709551615"),
            Ok(json!(u64::MAX))
        );
        assert_eq!(read(json!({"type": "integer"}), " 7 "), Ok(json!(7)));
        assert_eq!(read(json!({"type": "number"}), "1e3"), Ok(json!(1000.0)));
        assert_eq!(read(json!({"type": "string"}), "7"), Ok(json!("7")));
        assert_eq!(read(json!({"type": "string"}), " true"), Ok(json!(" true")));
        assert_eq!(read(json!({"type": "boolean"}), "Yes"), Ok(json!(true)));
        assert_eq!(read(json!({"type": ["integer", "null"]}), "7"), Ok(json!(7)));
        assert_eq!(read(json!({"type": ["integer", "null"]}), "null"), Ok(Value::Null));
        assert_eq!(
            read(json!({"anyOf": [{"type": "object"}, {"type": "null"}]}), r#"{"a":1}"#),
            Ok(json!({"a": 1}))
        );
        assert_eq!(read(json!({}), "[1]"), Ok(json!([1])));
        assert_eq!(read(json!({}), "word"), Ok(json!("word")));
        assert_eq!(read(json!({"$ref": "#/$defs/colour"}), "red"), Ok(json!("red")));
        assert_eq!(
            read(json!({"oneOf": [{"const": 1, "title": "One"}]}), "One"),
            Ok(json!(1))
        );
    }

    #[test]
    fn what_does_not_fit_is_told_what_is_expected() {
        let read = |schema: Value, typed: &str| field(schema).read(typed).unwrap_err();
        assert_eq!(read(json!({"type": "integer"}), "1.5"), "a whole number is expected");
        assert_eq!(read(json!({"type": "number"}), "NaN"), "a number is expected");
        assert_eq!(read(json!({"type": "boolean"}), "1"), "true or false is expected");
        assert_eq!(read(json!({"type": "object"}), "[1]"), "a JSON object is expected");
        assert_eq!(
            read(json!({"$ref": "#/$defs/colour"}), "blue"),
            "one of red, green is expected"
        );
        assert!(read(json!({"type": "integer", "maximum": 5}), "6").contains("maximum"));
        assert!(read(json!({"type": "string", "format": "email"}), "nobody").contains("email"));
        assert!(read(json!({"type": "string", "minLength": 3}), "ab").contains("short"));
    }

    #[test]
    fn an_array_is_json_or_its_elements() {
        let numbers = field(json!({"type": "array", "items": {"type": "integer"}, "maxItems": 2}));
        let read = |typed: &[&str]| numbers.read_all(&typed.iter().map(|&t| t.to_owned()).collect::<Vec<_>>());
        assert_eq!(read(&["[1, 2]"]), Ok(json!([1, 2])));
        assert_eq!(read(&["1", "2"]), Ok(json!([1, 2])));
        assert_eq!(read(&["1"]), Ok(json!([1])));
        assert_eq!(read(&["1", "x"]), Err("a whole number is expected".to_owned()));
        read(&["1", "2", "3"]).unwrap_err();
        let one = field(json!({"type": "string"}));
        one.read_all(&["a".to_owned(), "b".to_owned()]).unwrap_err();
    }

    #[test]
    fn a_senseless_schema_checks_nothing_and_ends() {
        let around = json!({"properties": {"f": {"$ref": "#/properties/f"}}});
        assert_eq!(fields(&around)[0].read("x"), Ok(json!("x")));
        for odd in [
            json!({"type": 7}),
            json!({"pattern": "("}),
            json!(7),
            json!({"$ref": "http://127.0.0.1:9/"}),
        ] {
            let _ = field(odd).read("x");
        }
        assert!(fields(&json!({"properties": 7})).is_empty());
    }
}
