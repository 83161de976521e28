//! Answers that are there before the questions.

use serde_json::{Map, Value, json};

use super::args;
use super::arguments::{self, parse};
use super::outcome::Stop;
use super::schema::{Check, fields};
use crate::Elicited;

/// The content of `--answers`: a JSON object.
///
/// A member with the key of a question is its answer. Other members are fields: a form is filled in from those that have
/// the names of its fields. So one file can answer questions whose keys the server makes up.
#[derive(Debug, Clone, Default)]
pub(super) struct Answers {
    given: Option<Map<String, Value>>,
}

impl Answers {
    pub(super) fn read(args: &args::Answers) -> Result<Self, Stop> {
        let Some(file) = &args.file else {
            return Ok(Self::default());
        };
        let name = file.display().to_string();
        let text = match name.as_str() {
            "-" | "@-" => arguments::read_stdin()?,
            _ => std::fs::read_to_string(file)
                .map_err(|error| Stop::local(format!("the answers in {name} cannot be read: {error}")))?,
        };
        Ok(Self {
            given: Some(parse(&name, &text)?),
        })
    }

    #[cfg(test)]
    fn of(given: Value) -> Self {
        Self {
            given: given.as_object().cloned(),
        }
    }

    /// The answer to a form; nothing if there is none here, and an error if there is one that does not fit.
    pub(super) fn form(
        &self,
        key: &str,
        schema: &Map<String, Value>,
    ) -> Result<Option<Elicited<Map<String, Value>>>, String> {
        let Some(given) = &self.given else { return Ok(None) };
        let schema = Value::Object(schema.clone());
        let content = match given.get(key) {
            Some(Value::Object(answer)) => match action(answer) {
                Some("accept") => match answer.get("content") {
                    Some(Value::Object(content)) => content.clone(),
                    _ => Map::new(),
                },
                Some("decline") => return Ok(Some(Elicited::Decline)),
                Some(_) => return Ok(Some(Elicited::Cancel)),
                None => answer.clone(),
            },
            // A field may have the name of the key.
            _ => {
                let fields = fields(&schema);
                let named = fields.iter().filter_map(|field| {
                    let value = given.get(&field.name)?;
                    Some((field.name.clone(), value.clone()))
                });
                let content: Map<String, Value> = named.collect();
                if content.is_empty() {
                    return Ok(None);
                }
                content
            }
        };
        match Check::new(&schema).problems(&Value::Object(content.clone())).as_slice() {
            [] => Ok(Some(Elicited::Accept(content))),
            problems => Err(format!(
                "the answer that is there for {key:?} does not fit: {}",
                problems.join("; ")
            )),
        }
    }

    /// Whether a page was visited.
    pub(super) fn url(&self, key: &str) -> Option<Elicited<()>> {
        match self.given.as_ref()?.get(key)? {
            Value::Bool(true) => Some(Elicited::Accept(())),
            Value::Bool(false) => Some(Elicited::Decline),
            Value::Object(answer) => match action(answer)? {
                "accept" => Some(Elicited::Accept(())),
                "decline" => Some(Elicited::Decline),
                _ => Some(Elicited::Cancel),
            },
            _ => None,
        }
    }
}

/// The action of an answer that is written out as in the protocol. A form may have a field of this name.
fn action(answer: &Map<String, Value>) -> Option<&str> {
    let is_whole = answer.keys().all(|name| matches!(name.as_str(), "action" | "content"));
    let action = answer.get("action").filter(|_| is_whole)?.as_str()?;
    matches!(action, "accept" | "decline" | "cancel").then_some(action)
}

/// An answer as the protocol has it.
pub(super) fn to_response(answer: Elicited<Map<String, Value>>) -> Value {
    match answer {
        Elicited::Accept(content) => json!({"action": "accept", "content": content}),
        Elicited::Decline => json!({"action": "decline"}),
        Elicited::Cancel => json!({"action": "cancel"}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(given: Value) -> Result<Option<Elicited<Map<String, Value>>>, String> {
        let schema = json!({
            "properties": {"publish": {"type": "boolean"}, "why": {"type": "string"}},
            "required": ["publish"],
        });
        Answers::of(given).form("q1", schema.as_object().unwrap())
    }

    #[test]
    fn a_form_is_answered_by_its_key_or_by_the_names_of_its_fields() {
        let content = json!({"publish": true});
        let accepted = Ok(Some(Elicited::Accept(content.as_object().unwrap().clone())));
        assert_eq!(form(json!({"q1": {"publish": true}})), accepted);
        assert_eq!(
            form(json!({"q1": {"action": "accept", "content": {"publish": true}}})),
            accepted
        );
        assert_eq!(form(json!({"publish": true, "other": 1})), accepted);
        assert_eq!(form(json!({"q1": {"publish": true}, "publish": false})), accepted);
        assert_eq!(
            form(json!({"q1": {"action": "decline"}, "publish": true})),
            Ok(Some(Elicited::Decline))
        );
        assert_eq!(form(json!({"q2": {"publish": true}})), Ok(None));
    }

    #[test]
    fn an_answer_that_does_not_fit_is_none() {
        form(json!({"publish": "yes"})).unwrap_err();
        form(json!({"why": "because"})).unwrap_err();
        form(json!({"q1": {}})).unwrap_err();
    }

    #[test]
    fn a_page_is_answered_by_its_key_alone() {
        let url = |given: Value| Answers::of(given).url("q1");
        assert_eq!(url(json!({"q1": true})), Some(Elicited::Accept(())));
        assert_eq!(url(json!({"q1": {"action": "cancel"}})), Some(Elicited::Cancel));
        assert_eq!(url(json!({"publish": true})), None);
    }
}
