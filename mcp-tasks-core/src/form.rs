//! Elicitation forms: what a form may ask, and whether an answer fits it.
//!
//! A form is the `requestedSchema` of MCP 2026-07-28 (`client/elicitation`, "Requested Schema"): a flat object whose
//! properties are strings, numbers, integers, booleans, one choice out of several, or several. [`FormSchema::parse`]
//! takes what `PrimitiveSchemaDefinition` of `schema.ts` lists and refuses everything else, `pattern` and
//! `exclusiveMinimum` included: clients do not show such a rule, so a user would be asked again without knowing why. Three
//! kinds of keyword that constrain nothing are let through besides: `$comment`, `examples` and everything that starts
//! with `x-`.
//!
//! Lengths are counted in Unicode characters.

mod check;
mod format;
mod schema;

use std::fmt::Write as _;

use serde_json::{Map, Value};

use check::FieldKind;

/// Why a schema was refused as a form. This is the author's mistake, never the user's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormError {
    /// The text is not JSON, or the schema as a whole is not a form.
    #[error("this is not the schema of an elicitation form: {problem}")]
    #[non_exhaustive]
    Form {
        /// What is wrong, and what is accepted where that helps.
        problem: String,
    },
    /// One field is of a kind that a form cannot ask for.
    #[error("the field `{field}` does not fit an elicitation form: {problem}")]
    #[non_exhaustive]
    Field {
        /// The name of the property.
        field: String,
        /// What is wrong, and what is accepted where that helps.
        problem: String,
    },
}

/// One thing wrong with an answer, in words for the user who gave it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{label} {reason}")]
#[non_exhaustive]
pub struct FieldError {
    /// The name of the property; empty when the answer as a whole is no object.
    pub field: String,
    /// What the user saw: the field's title, or else its name in backquotes.
    pub label: String,
    /// The rest of the sentence that begins with the label, such as `must be a whole number, not 1.5`.
    pub reason: String,
}

/// The schema of a form, checked, ready to check answers.
///
/// ```
/// use mcp_tasks_core::form::{FormSchema, form_problem_text};
/// use serde_json::json;
///
/// let form = FormSchema::parse(r#"{
///     "type": "object",
///     "properties": {
///         "height": {"type": "integer", "minimum": 1},
///         "note": {"type": "string", "title": "Note", "maxLength": 5}
///     },
///     "required": ["height"]
/// }"#)?;
///
/// let answer = form.validate(&json!({"height": 3.0, "note": null, "more": 1})).unwrap();
/// assert_eq!(serde_json::to_string(&answer).unwrap(), r#"{"height":3}"#);
///
/// let problems = form.validate(&json!({"height": 1.5, "note": "too long"})).unwrap_err();
/// assert_eq!(
///     form_problem_text(&problems),
///     "Please answer again: `height` must be a whole number, not 1.5; Note must have at most 5 characters, not 8."
/// );
/// # Ok::<(), mcp_tasks_core::form::FormError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct FormSchema {
    fields: Vec<Field>,
}

#[derive(Debug, Clone, PartialEq)]
struct Field {
    name: String,
    title: Option<String>,
    required: bool,
    kind: FieldKind,
}

impl FormSchema {
    /// Reads the JSON of a `requestedSchema`.
    ///
    /// From text and not from a [`Value`], because only the text keeps the order of the fields in every build.
    ///
    /// # Errors
    ///
    /// [`FormError`], which names the first field that is not a primitive or that no answer could fit: a nested object, a
    /// `$ref`, a keyword forms do not have, a default that does not fit, a minimum above its maximum.
    pub fn parse(json: &str) -> Result<Self, FormError> {
        schema::parse(json).map(|fields| Self { fields })
    }

    /// The names of the fields, in the order of the schema.
    pub fn field_names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| field.name.as_str())
    }

    /// Checks the `content` of an accepted answer.
    ///
    /// The result holds the fields of the schema only, in its order where the map keeps one; other members are dropped.
    /// `null` is absent, for a member and for the whole content. An integer may come as `3.0` and is `3` in the result,
    /// exact up to the ends of `i64` and `u64`, which it must not leave. Text that looks like a number is text. A default
    /// of the schema is for the client to offer and is not filled in here.
    ///
    /// # Errors
    ///
    /// One [`FieldError`] for each field that does not fit, in the order of the schema, never an empty list.
    pub fn validate(&self, content: &Value) -> Result<Map<String, Value>, Vec<FieldError>> {
        let empty = Map::new();
        let content = match content {
            Value::Object(members) => members,
            Value::Null => &empty,
            other => {
                let reason = format!("must be an object of fields, not {}", check::describe_value(other));
                return Err(vec![FieldError {
                    field: String::new(),
                    label: "the answer".to_owned(),
                    reason,
                }]);
            }
        };
        let mut accepted = Map::new();
        let mut problems = Vec::new();
        for field in &self.fields {
            let checked = match content.get(&field.name) {
                None | Some(Value::Null) if field.required => Err("is required".to_owned()),
                None | Some(Value::Null) => continue,
                Some(value) => field.kind.check(value),
            };
            match checked {
                Ok(value) => {
                    accepted.insert(field.name.clone(), value);
                }
                Err(reason) => problems.push(field.problem(reason)),
            }
        }
        if problems.is_empty() {
            Ok(accepted)
        } else {
            Err(problems)
        }
    }
}

impl Field {
    fn problem(&self, reason: String) -> FieldError {
        let label = self.title.clone().unwrap_or_else(|| format!("`{}`", self.name));
        FieldError {
            field: self.name.clone(),
            label,
            reason,
        }
    }
}

/// One sentence with every problem, to stand in front of the question when it is asked again; empty for no problem.
///
/// It ends in a full stop and without a line break.
#[must_use]
pub fn form_problem_text(problems: &[FieldError]) -> String {
    let mut text = String::new();
    for (index, problem) in problems.iter().enumerate() {
        let before = if index == 0 { "Please answer again: " } else { "; " };
        // Writing into a String does not fail.
        let _ = write!(text, "{before}{problem}");
    }
    if !text.is_empty() {
        text.push('.');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A field of every kind: u32, f64, optional text, one of and several of an enumeration, in an order no sorting gives.
    fn form() -> FormSchema {
        FormSchema::parse(
            r#"{
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "properties": {
                    "zoom": {"type": "number", "minimum": 0.5, "maximum": 4},
                    "height": {"type": "integer", "minimum": 0, "maximum": 4294967295},
                    "note": {"type": "string", "minLength": 2},
                    "codec": {"type": "string", "enum": ["av1", "h264"]},
                    "audio": {"type": "array", "minItems": 1, "items": {"type": "string", "enum": ["de", "en"]}},
                    "publish": {"type": "boolean", "title": "Publish it"}
                },
                "required": ["height", "publish"]
            }"#,
        )
        .unwrap()
    }

    fn height(value: Value) -> Result<Value, String> {
        match form().validate(&json!({"publish": true, "height": value})) {
            Ok(mut accepted) => Ok(accepted.remove("height").unwrap()),
            Err(problems) => Err(problems[0].reason.clone()),
        }
    }

    #[test]
    fn an_integer_is_told_by_value() {
        assert_eq!(height(json!(3)).unwrap().to_string(), "3");
        assert_eq!(height(json!(3.0)).unwrap().to_string(), "3");
        assert_eq!(height(json!(1.5)), Err("must be a whole number, not 1.5".to_owned()));
        assert_eq!(
            height(json!("3")),
            Err("must be a whole number, not the text \"3\"".to_owned())
        );
        assert_eq!(height(json!(true)), Err("must be a whole number, not true".to_owned()));
        assert_eq!(height(json!(-1)), Err("must be at least 0, not -1".to_owned()));
        assert_eq!(
            height(json!(4_294_967_296_u64)),
            Err("must be at most 4294967295, not 4294967296".to_owned())
        );
        assert_eq!(height(json!([3])), Err("must be a whole number, not a list".to_owned()));
        assert_eq!(height(Value::Null), Err("is required".to_owned()));
    }

    #[test]
    fn all_problems_come_at_once_in_the_order_of_the_schema() {
        let answer = json!({"audio": [], "note": "x", "codec": "vp9", "zoom": 5, "height": {}, "unknown": 1});
        let problems = form().validate(&answer).unwrap_err();
        let fields: Vec<_> = problems.iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(fields, ["zoom", "height", "note", "codec", "audio", "publish"]);
        assert_eq!(
            form_problem_text(&problems),
            "Please answer again: `zoom` must be at most 4, not 5; `height` must be a whole number, not an object; \
             `note` must have at least 2 characters, not 1; `codec` must be one of \"av1\", \"h264\", not the text \"vp9\"; \
             `audio` must have at least 1 choice, not 0; Publish it is required."
        );
        assert_eq!(form_problem_text(&[]), "");
    }

    #[test]
    fn a_good_answer_keeps_the_fields_of_the_schema_only() {
        let answer =
            json!({"publish": false, "audio": ["en"], "codec": null, "note": "öß", "zoom": 1, "height": 0, "x": {}});
        let accepted = form().validate(&answer).unwrap();
        assert_eq!(
            Value::Object(accepted),
            json!({"zoom": 1, "height": 0, "note": "öß", "audio": ["en"], "publish": false})
        );
        assert_eq!(
            form().field_names().collect::<Vec<_>>(),
            ["zoom", "height", "note", "codec", "audio", "publish"]
        );
    }

    #[test]
    fn content_that_is_null_is_empty_and_other_content_is_refused() {
        let optional = FormSchema::parse(r#"{"type":"object","properties":{"a":{"type":"string"}}}"#).unwrap();
        assert_eq!(optional.validate(&Value::Null), Ok(Map::new()));
        assert_eq!(form().validate(&Value::Null).unwrap_err().len(), 2);
        for content in [json!([]), json!("x"), json!(1), json!(false)] {
            let problems = optional.validate(&content).unwrap_err();
            assert_eq!(problems.len(), 1);
            assert!(form_problem_text(&problems).starts_with("Please answer again: the answer must be an object"));
        }
    }
}
