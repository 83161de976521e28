//! Whether what a client sent answers what was asked.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::form::{FormSchema, form_problem_text};
use crate::json::to_json;
use crate::{InputKind, InputRequest, Json};

mod merge;

pub use merge::Answers;

/// An entry of `inputResponses`, checked against the question under its key.
#[derive(Debug, PartialEq)]
pub(crate) enum CheckedResponse {
    /// The answer, as it is recorded.
    Answer(Json),
    /// An answer whose content does not fit, with the reason for people.
    Misfit(String),
    /// No answer at all: the entry is ignored.
    NoAnswer,
}

/// Why the body gets an error instead of an answer; the response of a [`Refusal`](crate::EntryKind::Refusal) entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Refusal {
    /// The client did not declare that it can be asked this.
    #[non_exhaustive]
    Capability {
        /// What it would have been asked.
        kind: InputKind,
    },
    /// The client answered the server's request with an error.
    #[non_exhaustive]
    Client {
        /// What it said.
        detail: String,
    },
    /// The client answered too often with what does not fit the form.
    #[non_exhaustive]
    InvalidAnswers {
        /// What did not fit the last time.
        detail: String,
    },
}

impl Refusal {
    /// The client cannot be asked for this.
    #[must_use]
    pub const fn capability(kind: InputKind) -> Self {
        Self::Capability { kind }
    }

    /// The client answered with an error.
    #[must_use]
    pub const fn client(detail: String) -> Self {
        Self::Client { detail }
    }

    /// The refusal as the response of a ledger entry.
    #[must_use]
    pub fn to_json(&self) -> Json {
        to_json(self)
    }
}

/// The recorded answer to an elicitation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "lowercase")]
#[non_exhaustive]
pub enum ElicitAnswer {
    /// The user agreed, with content that fits the form; empty in URL mode.
    #[non_exhaustive]
    Accept {
        /// The form's content.
        #[serde(default)]
        content: Map<String, Value>,
    },
    /// The user said no.
    Decline,
    /// The user closed the question without an answer.
    Cancel,
}

/// Checks `response` as an answer to `request`.
pub(crate) fn check_response(request: &InputRequest, response: &Json) -> CheckedResponse {
    #[derive(Deserialize)]
    struct Response {
        action: String,
        /// As text: it is decoded only when the answer is an accepted form.
        #[serde(default)]
        content: Option<Box<RawValue>>,
    }
    if !response.is_object() {
        return CheckedResponse::NoAnswer;
    }
    match request.kind {
        InputKind::Form | InputKind::Url => {
            let Ok(answer) = response.decode::<Response>() else {
                return CheckedResponse::NoAnswer;
            };
            match answer.action.as_str() {
                "decline" => CheckedResponse::Answer(to_json(&ElicitAnswer::Decline)),
                "cancel" => CheckedResponse::Answer(to_json(&ElicitAnswer::Cancel)),
                "accept" if request.kind == InputKind::Url => {
                    CheckedResponse::Answer(to_json(&ElicitAnswer::Accept { content: Map::new() }))
                }
                "accept" => match check_form(request, answer.content.as_deref()) {
                    Ok(content) => CheckedResponse::Answer(to_json(&ElicitAnswer::Accept { content })),
                    Err(problem) => CheckedResponse::Misfit(problem),
                },
                _ => CheckedResponse::NoAnswer,
            }
        }
        InputKind::Sampling => has_members(response, &["role", "content", "model"]),
        InputKind::Roots => has_members(response, &["roots"]),
    }
}

fn has_members(response: &Json, members: &[&str]) -> CheckedResponse {
    match response.decode::<BTreeMap<String, &RawValue>>() {
        Ok(object) if members.iter().all(|member| object.contains_key(*member)) => {
            CheckedResponse::Answer(response.clone())
        }
        _ => CheckedResponse::NoAnswer,
    }
}

#[derive(Deserialize)]
struct Params {
    params: ElicitParams,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ElicitParams {
    #[serde(default)]
    message: String,
    #[serde(default)]
    requested_schema: Option<Json>,
}

impl InputRequest {
    /// The words of the question, without the reason for asking again.
    pub(crate) fn message(&self) -> String {
        self.original
            .as_ref()
            .unwrap_or(&self.request)
            .decode::<Params>()
            .map(|request| request.params.message)
            .unwrap_or_default()
    }
}

fn check_form(request: &InputRequest, content: Option<&RawValue>) -> Result<Map<String, Value>, String> {
    const NO_FORM: &str = "The answer is not a form.";
    let content = match content.map(|content| serde_json::from_str(content.get())) {
        None | Some(Ok(Value::Null)) => Value::Object(Map::new()),
        Some(Ok(content)) => content,
        // Such as a number out of every range.
        Some(Err(_)) => return Err(NO_FORM.to_owned()),
    };
    let schema = request
        .request
        .decode::<Params>()
        .ok()
        .and_then(|request| request.params.requested_schema)
        .and_then(|schema| FormSchema::parse(schema.get()).ok());
    match schema {
        // The schema was checked before the question was published, so this record was edited by hand: the body decodes the
        // content itself and decides.
        None => match content {
            Value::Object(content) => Ok(content),
            _ => Err(NO_FORM.to_owned()),
        },
        Some(schema) => schema
            .validate(&content)
            .map_err(|problems| form_problem_text(&problems)),
    }
}

/// The question with the reason why the last answer did not fit in front of its message. Everything else stays as the
/// body wrote it, byte for byte.
pub(crate) fn with_problem(original: &Json, problem: &str) -> Json {
    #[derive(Deserialize)]
    struct Request<'a> {
        #[serde(borrow)]
        params: Params<'a>,
    }
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        message: &'a RawValue,
    }
    let text = original.get();
    let Ok(Request { params }) = serde_json::from_str::<Request<'_>>(text) else {
        return original.clone();
    };
    let before = params.message.get();
    let asked: String = serde_json::from_str(before).unwrap_or_default();
    let message = to_json(&format!("{problem}\n\n{asked}"));
    // Where in the text the message stands, which it is a part of.
    let at = before.as_ptr() as usize - text.as_ptr() as usize;
    let mended = [&text[..at], message.get(), &text[at + before.len()..]].concat();
    RawValue::from_string(mended).map_or_else(|_| original.clone(), Json::from)
}
