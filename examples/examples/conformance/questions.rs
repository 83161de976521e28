//! Asking the client in the middle of a call.
//!
//! A 2026-07-28 client gets the questions as the result of its call and calls again with the answers; a session of
//! 2025-11-25 gets them as requests while the call is open. Tools ask in one way for both, with [`Call::ask`].

#![expect(
    deprecated,
    reason = "sampling and roots are deprecated, and still part of both protocol revisions"
)]

use std::collections::BTreeMap;

use rmcp::{
    RoleServer,
    model::{
        CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, CreateMessageResult, ElicitResult,
        ElicitationAction, ErrorData, GetPromptResponse, GetPromptResult, InputRequest, InputRequiredResult,
        InputResponses, JsonObject, ListRootsResult, LoggingLevel, ProtocolVersion,
    },
    service::{RequestContext, ServiceError},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::handler::Fixtures;

/// What a call keeps between two rounds, sealed in `requestState`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// The name given in an earlier round.
    pub(crate) name: Option<String>,
}

/// One `tools/call` or `prompts/get`.
pub(crate) struct Call<'a> {
    /// The server's state.
    pub(crate) fixtures: &'a Fixtures,
    /// The request's arguments.
    pub(crate) arguments: JsonObject,
    /// What an earlier round kept, when the client sent it back untouched.
    pub(crate) kept: Option<Kept>,
    /// The request as rmcp knows it.
    pub(crate) context: RequestContext<RoleServer>,
    /// Method and name; a `requestState` is good for this one only.
    operation: String,
    responses: InputResponses,
}

/// Why a call ends before its result is there.
pub(crate) enum Stop {
    /// Questions that the client answers by calling again.
    Asked(Box<InputRequiredResult>),
    /// The tool could not do its work.
    Failed(String),
    /// A JSON-RPC error.
    Error(ErrorData),
}

impl From<ErrorData> for Stop {
    fn from(error: ErrorData) -> Self {
        Self::Error(error)
    }
}

impl From<ServiceError> for Stop {
    fn from(error: ServiceError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl Stop {
    /// The end of a `tools/call`.
    pub(crate) fn of_tool(result: Result<CallToolResult, Self>) -> Result<CallToolResponse, ErrorData> {
        match result {
            Ok(result) => Ok(result.into()),
            Err(Self::Asked(rounds)) => Ok((*rounds).into()),
            Err(Self::Failed(text)) => Ok(CallToolResult::error(vec![ContentBlock::text(text)]).into()),
            Err(Self::Error(error)) => Err(error),
        }
    }

    /// The end of a `prompts/get`.
    pub(crate) fn of_prompt(result: Result<GetPromptResult, Self>) -> Result<GetPromptResponse, ErrorData> {
        match result {
            Ok(result) => Ok(result.into()),
            Err(Self::Asked(rounds)) => Ok((*rounds).into()),
            Err(Self::Failed(text)) => Err(ErrorData::internal_error(text, None)),
            Err(Self::Error(error)) => Err(error),
        }
    }
}

impl<'a> Call<'a> {
    /// Takes up a request. A `requestState` that this server did not give for the same operation is refused.
    pub(crate) fn new(
        fixtures: &'a Fixtures,
        operation: String,
        arguments: Option<JsonObject>,
        responses: Option<InputResponses>,
        state: Option<&str>,
        context: RequestContext<RoleServer>,
    ) -> Result<Self, ErrorData> {
        let kept = state
            .map(|state| fixtures.states().open(state, &operation))
            .transpose()?;
        Ok(Self {
            fixtures,
            arguments: arguments.unwrap_or_default(),
            kept,
            context,
            operation,
            responses: responses.unwrap_or_default(),
        })
    }

    /// Whether questions are rounds of the call (2026-07-28) and not requests of the server.
    pub(crate) fn in_rounds(&self) -> bool {
        in_rounds(&self.context)
    }

    /// The capabilities that apply to this request.
    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        self.context.client_capabilities().unwrap_or_default()
    }

    /// Whether a log message of this level may be sent to the client.
    pub(crate) fn logs(&self, level: LoggingLevel) -> bool {
        let threshold = if self.in_rounds() {
            self.context.meta.log_level()
        } else {
            Some(self.fixtures.session_state().level())
        };
        threshold.is_some_and(|threshold| severity(level) >= severity(threshold))
    }

    /// Gets an answer to each question, now or by way of another round.
    pub(crate) async fn ask<const N: usize>(
        &self,
        questions: [(&str, InputRequest); N],
        keep: Option<&Kept>,
    ) -> Result<Answers, Stop> {
        let capabilities = self.capabilities();
        for (_, question) in &questions {
            if !supports(&capabilities, question) {
                return Err(self.refusal(question));
            }
        }
        let mut answers = BTreeMap::new();
        if !self.in_rounds() {
            for (key, question) in questions {
                answers.insert(key.to_owned(), self.request(question).await?);
            }
            return Ok(Answers(answers));
        }
        for (key, question) in &questions {
            if let Some(answer) = self.responses.get(*key).filter(|answer| fits(question, answer)) {
                answers.insert((*key).to_owned(), answer.clone());
            }
        }
        if answers.len() == N {
            return Ok(Answers(answers));
        }
        Err(self.asked(questions, keep)?)
    }

    /// Another round, with what it is to keep.
    pub(crate) fn asked<const N: usize>(
        &self,
        questions: [(&str, InputRequest); N],
        keep: Option<&Kept>,
    ) -> Result<Stop, ErrorData> {
        let state = keep
            .map(|kept| self.fixtures.states().seal(kept, &self.operation))
            .transpose()?;
        let questions = questions.map(|(key, question)| (key.to_owned(), question));
        Ok(Stop::Asked(Box::new(InputRequiredResult::new(
            Some(questions.into()),
            state,
        ))))
    }

    /// What a client gets that cannot be asked.
    fn refusal(&self, question: &InputRequest) -> Stop {
        let (name, required) = match question {
            InputRequest::Elicitation(_) => (
                "elicitation",
                ClientCapabilities::builder().enable_elicitation().build(),
            ),
            InputRequest::CreateMessage(_) => ("sampling", ClientCapabilities::builder().enable_sampling().build()),
            _ => ("roots", ClientCapabilities::builder().enable_roots().build()),
        };
        if self.in_rounds() {
            ErrorData::missing_required_client_capability(required).into()
        } else {
            Stop::Failed(format!("The client did not declare the capability {name}"))
        }
    }

    async fn request(&self, question: InputRequest) -> Result<Value, Stop> {
        let peer = &self.context.peer;
        let answer = match question {
            InputRequest::Elicitation(request) => serde_json::to_value(peer.create_elicitation(request.params).await?),
            InputRequest::CreateMessage(request) => serde_json::to_value(peer.create_message(request.params).await?),
            InputRequest::ListRoots(_) => serde_json::to_value(peer.list_roots().await?),
            _ => Ok(Value::Null),
        };
        answer.map_err(|error| ErrorData::internal_error(error.to_string(), None).into())
    }
}

/// Whether a request is of a revision in which the server sends no requests of its own.
pub(crate) fn in_rounds(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Whether a client with these capabilities can answer the question.
pub(crate) fn supports(capabilities: &ClientCapabilities, question: &InputRequest) -> bool {
    match question {
        // An elicitation capability that names no mode means forms.
        InputRequest::Elicitation(_) => capabilities
            .elicitation
            .as_ref()
            .is_some_and(|modes| modes.form.is_some() || modes.url.is_none()),
        InputRequest::CreateMessage(_) => capabilities.sampling.is_some(),
        InputRequest::ListRoots(_) => capabilities.roots.is_some(),
        _ => false,
    }
}

/// Whether the answer is one to this question; anything else is asked again.
fn fits(question: &InputRequest, answer: &Value) -> bool {
    match question {
        InputRequest::Elicitation(_) => ElicitResult::deserialize(answer).is_ok_and(|result| {
            result.action != ElicitationAction::Accept
                || result.content.is_some_and(|content| has_required(question, &content))
        }),
        InputRequest::CreateMessage(_) => CreateMessageResult::deserialize(answer).is_ok(),
        InputRequest::ListRoots(_) => ListRootsResult::deserialize(answer).is_ok(),
        _ => false,
    }
}

fn has_required(question: &InputRequest, content: &Value) -> bool {
    let question = serde_json::to_value(question).unwrap_or_default();
    let required = question
        .pointer("/params/requestedSchema/required")
        .and_then(Value::as_array);
    content.is_object()
        && required.is_none_or(|names| {
            names
                .iter()
                .filter_map(Value::as_str)
                .all(|name| content.get(name).is_some_and(|value| !value.is_null()))
        })
}

fn severity(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        _ => 7,
    }
}

/// The client's answers, by the keys of their questions.
pub(crate) struct Answers(BTreeMap<String, Value>);

impl Answers {
    /// What the user did with a form, and what they filled in.
    pub(crate) fn outcome(&self, key: &str) -> String {
        let answer = self.0.get(key).unwrap_or(&Value::Null);
        let action = answer["action"].as_str().unwrap_or("cancel");
        format!("action={action}, content={}", answer["content"])
    }

    /// A field of a form as text, or the user's refusal of the form.
    pub(crate) fn field(&self, key: &str, field: &str) -> String {
        let answer = self.0.get(key).unwrap_or(&Value::Null);
        match &answer["content"][field] {
            Value::String(text) => text.clone(),
            Value::Null => format!("({})", answer["action"].as_str().unwrap_or("no answer")),
            other => other.to_string(),
        }
    }

    /// The text of a sampled message.
    pub(crate) fn message(&self, key: &str) -> String {
        let content = self.0.get(key).map_or(&Value::Null, |answer| &answer["content"]);
        let blocks = content.as_array().map_or(std::slice::from_ref(content), Vec::as_slice);
        blocks.iter().filter_map(|block| block["text"].as_str()).collect()
    }

    /// The URIs of the client's roots.
    pub(crate) fn roots(&self, key: &str) -> Vec<&str> {
        self.0
            .get(key)
            .and_then(|answer| answer["roots"].as_array())
            .into_iter()
            .flatten()
            .filter_map(|root| root["uri"].as_str())
            .collect()
    }
}

/// A form for the user.
pub(crate) fn form(message: &str, schema: Value) -> Result<InputRequest, ErrorData> {
    question(json!({
        "method": "elicitation/create",
        "params": { "mode": "form", "message": message, "requestedSchema": schema },
    }))
}

/// A form with one required text.
pub(crate) fn text_form(message: &str, field: &str) -> Result<InputRequest, ErrorData> {
    form(
        message,
        json!({ "type": "object", "properties": { field: { "type": "string" } }, "required": [field] }),
    )
}

/// A prompt for the client's model.
pub(crate) fn sample(prompt: &str, max_tokens: u32) -> Result<InputRequest, ErrorData> {
    question(json!({
        "method": "sampling/createMessage",
        "params": {
            "messages": [{ "role": "user", "content": { "type": "text", "text": prompt } }],
            "maxTokens": max_tokens,
        },
    }))
}

/// The client's roots.
pub(crate) fn roots() -> Result<InputRequest, ErrorData> {
    question(json!({ "method": "roots/list", "params": {} }))
}

fn question(value: Value) -> Result<InputRequest, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}
