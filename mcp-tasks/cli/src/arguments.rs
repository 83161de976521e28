//! The arguments of a call, checked before anything is sent.

use std::collections::BTreeMap;
use std::io::Read;

use rmcp::model::Tool;
use serde_json::{Map, Value};

use crate::outcome::CommandError;
use crate::schema::{Check, Field, fields};

/// Makes the arguments of a tool from the command line.
pub(crate) fn of_tool(
    tool: &Tool,
    given: Map<String, Value>,
    typed: &[(String, String)],
) -> Result<Map<String, Value>, CommandError> {
    let schema = Value::Object((*tool.input_schema).clone());
    object(&schema, given, typed).map_err(|problems| {
        let name = &tool.name;
        let taken: Vec<_> = fields(&schema)
            .iter()
            .map(|field| format!("  {}", described(field)))
            .collect();
        let taken = match taken.is_empty() {
            true => "It takes none.".to_owned(),
            false => format!("It takes:\n{}", taken.join("\n")),
        };
        CommandError::usage(format!(
            "these arguments do not fit the tool {name}, and nothing was sent:\n  {}\n{taken}",
            problems.join("\n  ")
        ))
    })
}

/// Makes an object of a schema: what is given whole, and what was typed for its fields.
pub(crate) fn object(
    schema: &Value,
    given: Map<String, Value>,
    typed: &[(String, String)],
) -> Result<Map<String, Value>, Vec<String>> {
    let fields = fields(schema);
    let mut object = given;
    let mut problems = Vec::new();
    let mut by_name: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, value) in typed {
        by_name.entry(name).or_default().push(value.clone());
    }
    for (name, values) in by_name {
        let Some(field) = fields.iter().find(|field| field.name == name) else {
            // More likely a mistake than wanted; --json sends it, if the schema does not forbid it.
            problems.push(format!("{name}: there is no such argument"));
            continue;
        };
        match field.read_all(&values) {
            Ok(value) => drop(object.insert(name.to_owned(), value)),
            Err(problem) => problems.push(format!("{name}: {problem}")),
        }
    }
    for field in fields.iter().filter(|field| field.required) {
        let wrong = || {
            problems
                .iter()
                .any(|problem| problem.starts_with(&format!("{}: ", field.name)))
        };
        if !object.contains_key(&field.name) && !wrong() {
            problems.push(format!(
                "{}: it is missing; {} is expected",
                field.name,
                field.expected()
            ));
        }
    }
    if problems.is_empty() {
        problems = Check::new(schema).problems(&Value::Object(object.clone()));
    }
    match problems.is_empty() {
        true => Ok(object),
        false => Err(problems),
    }
}

/// An argument in one line.
pub(crate) fn described(field: &Field) -> String {
    let mut words = format!("{}: {}", field.name, field.expected());
    if let Some(default) = field.default() {
        words.push_str(&format!(" (default {default})"));
    } else if !field.required {
        words.push_str(" (may be left out)");
    }
    if let Some(description) = field.text("description").or_else(|| field.text("title")) {
        words.push_str(&format!(" – {}", crate::text::line(description)));
    }
    words
}

/// A JSON object from the command line, a file, or standard input.
pub(crate) fn json(text: &str) -> Result<Map<String, Value>, CommandError> {
    let (from, text) = match text.strip_prefix('@') {
        Some("-") => ("standard input".to_owned(), read_stdin()?),
        Some(file) => {
            let text = std::fs::read_to_string(file);
            (
                file.to_owned(),
                text.map_err(|error| CommandError::local(format!("{file} cannot be read: {error}")))?,
            )
        }
        None => ("--json".to_owned(), text.to_owned()),
    };
    parse(&from, &text)
}

pub(crate) fn read_stdin() -> Result<String, CommandError> {
    let mut text = String::new();
    let read = std::io::stdin().lock().read_to_string(&mut text);
    read.map_err(|error| CommandError::local(format!("standard input cannot be read: {error}")))?;
    Ok(text)
}

pub(crate) fn parse(from: &str, text: &str) -> Result<Map<String, Value>, CommandError> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(CommandError::usage(format!(
            "{from} has JSON that is no object, such as {{\"name\": \"value\"}}"
        ))),
        Err(error) => Err(CommandError::usage(format!("{from} has no JSON object: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn made(given: Value, typed: &[(&str, &str)]) -> Result<Value, Vec<String>> {
        let schema = json!({
            "type": "object",
            "properties": {"text": {"type": "string"}, "times": {"type": "integer", "maximum": 255}},
            "required": ["text", "times"],
        });
        let Value::Object(given) = given else {
            unreachable!("a test")
        };
        let typed: Vec<_> = typed
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        object(&schema, given, &typed).map(Value::Object)
    }

    #[test]
    fn typed_arguments_replace_given_ones() {
        let given = json!({"text": "a", "times": 1});
        assert_eq!(
            made(given.clone(), &[("times", "2")]),
            Ok(json!({"text": "a", "times": 2}))
        );
        assert_eq!(made(given, &[]), Ok(json!({"text": "a", "times": 1})));
    }

    #[test]
    fn every_mistake_is_told() {
        assert_eq!(
            made(json!({}), &[("times", "many"), ("tims", "2")]),
            Err(vec![
                "times: a whole number is expected".to_owned(),
                "tims: there is no such argument".to_owned(),
                "text: it is missing; text is expected".to_owned(),
            ])
        );
        let problems = made(json!({"text": 7, "times": 300}), &[]).unwrap_err();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(
            problems.iter().any(|problem| problem.starts_with("times: 300 ")),
            "{problems:?}"
        );
    }
}
