//! A request of the plain fixtures, and how a prompt asks the user: the question goes back as the result of
//! `prompts/get`, and the client sends the request again with the answer (2026-07-28, "Multi Round-Trip Requests").

#![expect(
    deprecated,
    reason = "logging is deprecated, and still part of both protocol revisions"
)]

use rmcp::{
    RoleServer,
    model::{
        CallToolResponse, CallToolResult, ContentBlock, ElicitResult, ErrorData, GetPromptResponse, GetPromptResult,
        InputRequest, InputRequiredResult, InputResponses, JsonObject, LoggingLevel, ProtocolVersion,
    },
    service::{RequestContext, ServiceError},
};
use serde::Deserialize;
use serde_json::json;

use crate::handler::Fixtures;

/// One `tools/call` or `prompts/get`.
pub(crate) struct Call<'a> {
    /// The server's state.
    pub(crate) fixtures: &'a Fixtures,
    /// The request's arguments.
    pub(crate) arguments: JsonObject,
    /// The request as rmcp knows it.
    pub(crate) context: RequestContext<RoleServer>,
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
    /// Takes up a request.
    pub(crate) fn new(
        fixtures: &'a Fixtures,
        arguments: Option<JsonObject>,
        responses: Option<InputResponses>,
        context: RequestContext<RoleServer>,
    ) -> Self {
        Self {
            fixtures,
            arguments: arguments.unwrap_or_default(),
            context,
            responses: responses.unwrap_or_default(),
        }
    }

    /// Whether a log message of this level may be sent to the client.
    pub(crate) fn logs(&self, level: LoggingLevel) -> bool {
        let threshold = if in_rounds(&self.context) {
            self.context.meta.log_level()
        } else {
            Some(self.fixtures.session_state().level())
        };
        threshold.is_some_and(|threshold| severity(level) >= severity(threshold))
    }

    /// The text that the user fills in under `field`, now or by way of another round.
    pub(crate) fn ask_text(&self, key: &str, message: &str, field: &str) -> Result<String, Stop> {
        let answer = self
            .responses
            .get(key)
            .and_then(|answer| ElicitResult::deserialize(answer).ok());
        if let Some(answer) = answer {
            let text = answer.content.as_ref().and_then(|content| content[field].as_str());
            return Ok(text.unwrap_or("(no answer)").to_owned());
        }
        let schema = json!({ "type": "object", "properties": { field: { "type": "string" } }, "required": [field] });
        let question: InputRequest = serde_json::from_value(json!({
            "method": "elicitation/create",
            "params": { "mode": "form", "message": message, "requestedSchema": schema },
        }))
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let questions = [(key.to_owned(), question)].into();
        Err(Stop::Asked(Box::new(InputRequiredResult::new(Some(questions), None))))
    }
}

/// Whether a request is of a revision in which the server sends no requests of its own.
pub(crate) fn in_rounds(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
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
