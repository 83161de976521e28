//! Answers that are there before the questions.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_tasks::client::Elicited;
use serde_json::{Map, Value, json};

use crate::args;
use crate::arguments::{self, parse};
use crate::outcome::CommandError;
use crate::schema::{Check, fields};

/// The content of `--answers`: a JSON object.
///
/// A member with the key of a question is its answer. Other members are fields: a form is filled in from those that have
/// the names of its fields. So one file can answer questions whose keys the server makes up.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answers {
    given: Option<Given>,
}

/// What the file has.
#[derive(Debug, Clone)]
struct Given {
    /// The file, in words.
    name: String,
    members: Map<String, Value>,
    /// The members that answered something.
    used: Arc<Mutex<BTreeSet<String>>>,
}

impl Given {
    fn new(name: String, members: Map<String, Value>) -> Self {
        Self {
            name,
            members,
            used: Arc::default(),
        }
    }

    /// A member that is an answer.
    fn take(&self, name: &str) -> Option<&Value> {
        let value = self.members.get(name)?;
        self.used().insert(name.to_owned());
        Some(value)
    }

    fn used(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The end of a sentence about members that were not used.
    fn unused(&self) -> String {
        let used = self.used();
        let unused: Vec<_> = self
            .members
            .keys()
            .filter(|name| !used.contains(*name))
            .map(String::as_str)
            .collect();
        match unused.is_empty() {
            true => String::new(),
            false => format!(". Not used so far: {}", unused.join(", ")),
        }
    }
}

impl Answers {
    pub(crate) fn read(args: &args::Answers) -> Result<Self, CommandError> {
        let Some(file) = &args.file else {
            return Ok(Self::default());
        };
        let name = file.display().to_string();
        let text = match name.as_str() {
            "-" | "@-" => arguments::read_stdin()?,
            _ => std::fs::read_to_string(file)
                .map_err(|error| CommandError::local(format!("the answers in {name} cannot be read: {error}")))?,
        };
        let members = parse(&name, &text)?;
        let name = match name.as_str() {
            "-" | "@-" => "standard input".to_owned(),
            _ => name,
        };
        Ok(Self {
            given: Some(Given::new(name, members)),
        })
    }

    #[cfg(test)]
    fn of(given: Value) -> Self {
        let given = given.as_object().cloned();
        Self {
            given: given.map(|members| Given::new("answers.json".to_owned(), members)),
        }
    }

    /// Why a question is not answered by the file: what it has nothing for, and what it has that answered nothing. Nothing
    /// if there is no file. `schema` is that of the question's form.
    pub(crate) fn why_missing(&self, key: &str, schema: Option<&Map<String, Value>>) -> Option<String> {
        let given = self.given.as_ref()?;
        let fields = schema.map_or_else(Vec::new, |schema| fields(&Value::Object(schema.clone())));
        // What a form can do without is asked for only where nothing else is.
        let any = !fields.iter().any(|field| field.required);
        let fields = fields.iter().filter(|field| any || field.required);
        let fields: Vec<_> = fields.map(|field| field.name.as_str()).collect();
        let wanted = match fields.is_empty() {
            true => format!("the question {key:?}"),
            false => format!("{}, nor for the question {key:?}", fields.join(", ")),
        };
        Some(format!("{} has nothing for {wanted}{}", given.name, given.unused()))
    }

    /// The answer to a form; nothing if there is none here, and an error if there is one that does not fit.
    pub(crate) fn form(
        &self,
        key: &str,
        schema: &Map<String, Value>,
    ) -> Result<Option<Elicited<Map<String, Value>>>, String> {
        let Some(given) = &self.given else { return Ok(None) };
        let schema = Value::Object(schema.clone());
        // A field may have the name of the key.
        let by_key = given.members.get(key).filter(|answer| answer.is_object());
        let content = match by_key.and_then(|_| given.take(key)) {
            Some(Value::Object(answer)) => match action(answer) {
                Some("accept") => match answer.get("content") {
                    Some(Value::Object(content)) => content.clone(),
                    _ => Map::new(),
                },
                Some("decline") => return Ok(Some(Elicited::Decline)),
                Some(_) => return Ok(Some(Elicited::Cancel)),
                None => answer.clone(),
            },
            _ => {
                let fields = fields(&schema);
                let named = fields.iter().filter_map(|field| {
                    let value = given.take(&field.name)?;
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
                "the answer that is there for {key:?} does not fit: {}{}",
                problems.join("; "),
                given.unused()
            )),
        }
    }

    /// Whether a page was visited.
    pub(crate) fn url(&self, key: &str) -> Option<Elicited<()>> {
        let given = self.given.as_ref()?;
        let answer = match given.members.get(key)? {
            Value::Bool(true) => Elicited::Accept(()),
            Value::Bool(false) => Elicited::Decline,
            Value::Object(answer) => match action(answer)? {
                "accept" => Elicited::Accept(()),
                "decline" => Elicited::Decline,
                _ => Elicited::Cancel,
            },
            _ => return None,
        };
        given.used().insert(key.to_owned());
        Some(answer)
    }
}

/// The action of an answer that is written out as in the protocol. A form may have a field of this name.
fn action(answer: &Map<String, Value>) -> Option<&str> {
    let is_whole = answer.keys().all(|name| matches!(name.as_str(), "action" | "content"));
    let action = answer.get("action").filter(|_| is_whole)?.as_str()?;
    matches!(action, "accept" | "decline" | "cancel").then_some(action)
}

/// An answer as the protocol has it.
pub(crate) fn to_response(answer: Elicited<Map<String, Value>>) -> Value {
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
    fn what_a_file_lacks_is_said_with_what_it_has_besides() {
        let schema = json!({
            "properties": {"publish": {"type": "boolean"}, "why": {"type": "string"}},
            "required": ["publish"],
        });
        let lack = |given: Value| Answers::of(given).why_missing("q1", schema.as_object()).unwrap();
        let nothing = "answers.json has nothing for publish, nor for the question \"q1\"";
        assert_eq!(lack(json!({})), nothing);
        assert_eq!(
            lack(json!({"publsh": true, "a": 1})),
            format!("{nothing}. Not used so far: publsh, a")
        );
        let misspelt = form(json!({"why": "because", "publsh": true})).unwrap_err();
        assert!(misspelt.contains("\"publish\" is a required property"), "{misspelt}");
        assert!(misspelt.ends_with(". Not used so far: publsh"), "{misspelt}");

        let answers = Answers::of(json!({"pgae": true, "q1": {"publish": true}}));
        answers.form("q1", schema.as_object().unwrap()).unwrap().unwrap();
        assert_eq!(
            answers.why_missing("page", None).unwrap(),
            "answers.json has nothing for the question \"page\". Not used so far: pgae"
        );
        let odd = Answers::of(json!({"page": "yes"}));
        assert_eq!(odd.url("page"), None);
        assert!(
            odd.why_missing("page", None)
                .unwrap()
                .ends_with(". Not used so far: page")
        );
        assert_eq!(Answers::default().why_missing("q1", None), None);
    }

    #[test]
    fn a_page_is_answered_by_its_key_alone() {
        let url = |given: Value| Answers::of(given).url("q1");
        assert_eq!(url(json!({"q1": true})), Some(Elicited::Accept(())));
        assert_eq!(url(json!({"q1": {"action": "cancel"}})), Some(Elicited::Cancel));
        assert_eq!(url(json!({"publish": true})), None);
    }
}
