//! Why a question has no answer, and the JSON-RPC error for a capability that the client lacks.

use std::borrow::Cow;
use std::fmt;

use mcp_tasks_core::InputKind;
use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use serde_json::{Value, json};

/// Why there is no answer to a question, not even a "no".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElicitError {
    /// The client of this request did not declare that it can be asked this.
    #[error("this needs an answer that the client cannot give: it declared no support for {}", needed(*.kind))]
    #[non_exhaustive]
    NotSupported {
        /// What it would have been asked.
        kind: InputKind,
    },
    /// The client answered with an error.
    #[error("the client could not answer: {detail}")]
    #[non_exhaustive]
    Client {
        /// What it said.
        detail: String,
    },
    /// The user's answers did not fit the form, three times.
    #[error("the user's answers did not fit the form: {detail}")]
    #[non_exhaustive]
    InvalidAnswers {
        /// What did not fit the last time.
        detail: String,
    },
    /// The question is not one the protocol allows, such as a form that is not a flat object.
    #[error("the question cannot be asked: {detail}")]
    #[non_exhaustive]
    InvalidQuestion {
        /// What is wrong with it.
        detail: String,
    },
    /// The answer is valid in the protocol, but does not decode to the type that the function asked for.
    #[error("the answer does not fit its type: {detail}")]
    #[non_exhaustive]
    Undecodable {
        /// What serde said.
        detail: String,
    },
    /// The question was asked outside the tool's own future, such as in a spawned task or inside a step.
    #[error(
        "a question was asked outside the tool's own future (inside a step, in a spawned task, or after the tool \
         returned); ask it in the function itself, or with join!"
    )]
    Detached,
}

const fn needed(kind: InputKind) -> &'static str {
    match kind {
        InputKind::Form => "elicitation in form mode",
        InputKind::Url => "elicitation in URL mode",
        InputKind::Sampling => "sampling",
        InputKind::Roots => "roots",
        _ => "such questions",
    }
}

/// `-32021` with what would be needed (2026-07-28, "Missing Required Client Capability").
pub(crate) fn missing_capability(message: impl Into<Cow<'static, str>>, required: Value) -> ErrorData {
    let data = json!({"requiredCapabilities": required});
    ErrorData::new(ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY, message, Some(data))
}

impl ElicitError {
    /// The JSON-RPC error that stands for this one, where the protocol has one: `-32021` with the capability that would
    /// be needed. The others are errors of the tool.
    #[must_use]
    pub fn to_error_data(&self) -> Option<ErrorData> {
        let Self::NotSupported { kind } = self else { return None };
        let required = match kind {
            InputKind::Form => json!({"elicitation": {"form": {}}}),
            InputKind::Url => json!({"elicitation": {"url": {}}}),
            InputKind::Sampling => json!({"sampling": {}}),
            InputKind::Roots => json!({"roots": {}}),
            _ => return None,
        };
        Some(missing_capability(self.to_string(), required))
    }

    pub(crate) fn undecodable(error: &serde_json::Error) -> Self {
        Self::Undecodable {
            detail: error.to_string(),
        }
    }

    pub(crate) fn invalid(error: impl fmt::Display) -> Self {
        Self::InvalidQuestion {
            detail: error.to_string(),
        }
    }
}
