//! How a call fails, seen from the client.

use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use serde_json::Value;

use super::decode::Malformed;
use super::{InputRequest, SavedTask};
use crate::TaskId;

/// How a call or a task fails for the client.
///
/// A tool that fails is no error here: its result says so ([`ToolResult::is_error`](super::ToolResult::is_error)).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server does not know the task: it never did, has deleted it, or does not show it to this caller.
    #[error("the server does not know the task {0}")]
    UnknownTask(TaskId),
    /// The task is past its time, and gone.
    #[error("the task {} has expired", .0.id())]
    Expired(Box<SavedTask>),
    /// The task has ended with a JSON-RPC error.
    #[error("the task {id} has failed: {} ({})", .error.message, .error.code.0)]
    #[non_exhaustive]
    Failed {
        /// The task.
        id: TaskId,
        /// The error.
        error: Box<ErrorData>,
        /// What the server said about it.
        status_message: Option<String>,
    },
    /// The task was called off.
    #[error("the task {id} was cancelled")]
    #[non_exhaustive]
    Cancelled {
        /// The task.
        id: TaskId,
        /// What the server said about it.
        status_message: Option<String>,
    },
    /// The server asks something that nobody here answers.
    #[error("{0}")]
    InputNeeded(Box<InputNeeded>),
    /// The server wants a capability that this client does not declare.
    #[error("the server needs a capability that this client does not have: {message}")]
    #[non_exhaustive]
    MissingCapability {
        /// The server's words.
        message: String,
        /// The capabilities it names, or null.
        required: Value,
    },
    /// The server answered the request with a JSON-RPC error.
    #[error("the server refused: {} ({})", .0.message, .0.code.0)]
    Refused(ErrorData),
    /// The server cannot be reached, or does not answer. A task it works on goes on; see [`ClientError::task`].
    #[error("{source}")]
    #[non_exhaustive]
    Transport {
        /// What went wrong.
        source: TransportError,
        /// The task that was waited for.
        task: Option<Box<SavedTask>>,
    },
    /// The server sent something that makes no sense as an answer.
    #[error("{message}")]
    #[non_exhaustive]
    Protocol {
        /// What it sent.
        message: String,
        /// The task that was waited for.
        task: Option<Box<SavedTask>>,
    },
    /// The task was saved on another server than this one.
    #[error("the task {} is one of the server {expected:?}, this is {found:?}", .task.id())]
    #[non_exhaustive]
    OtherServer {
        /// The task.
        task: Box<SavedTask>,
        /// The name of its server.
        expected: String,
        /// The name of this one.
        found: String,
    },
}

impl ClientError {
    /// The task that goes on although nobody waits for it any more; [resume](super::TaskClient::resume) it later.
    #[must_use]
    pub fn task(&self) -> Option<&SavedTask> {
        match self {
            Self::InputNeeded(needed) => needed.task.as_ref(),
            Self::Transport { task, .. } | Self::Protocol { task, .. } => task.as_deref(),
            _ => None,
        }
    }

    pub(super) fn protocol(message: impl Into<String>) -> Self {
        Self::Protocol {
            message: message.into(),
            task: None,
        }
    }

    /// Says which task was waited for, where the error does not say so by itself.
    pub(super) fn of_task(mut self, saved: &SavedTask) -> Self {
        if let Self::Transport { task, .. } | Self::Protocol { task, .. } = &mut self {
            *task = Some(Box::new(saved.clone()));
        }
        self
    }

    /// An error in answer to a request that is no `tasks/*`.
    pub(super) fn refused(error: ErrorData) -> Self {
        // -32003 is what this code was in drafts, and what servers of that time still send.
        if [ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY.0, -32003].contains(&error.code.0) {
            let data = error.data.unwrap_or_default();
            return Self::MissingCapability {
                message: error.message.into_owned(),
                required: data.get("requiredCapabilities").cloned().unwrap_or_default(),
            };
        }
        Self::Refused(error)
    }
}

impl From<Malformed> for ClientError {
    fn from(error: Malformed) -> Self {
        Self::protocol(error.to_string())
    }
}

/// What has to be answered before anything goes on.
#[derive(Debug, thiserror::Error)]
#[error("the server asks for input: {}", self.summary())]
#[non_exhaustive]
pub struct InputNeeded {
    /// The task that asks. `None` if a call asks that is no task: it has to be called again.
    pub task: Option<SavedTask>,
    /// What it asks.
    pub requests: Vec<InputRequest>,
    /// Why it was not answered.
    pub reason: String,
}

impl InputNeeded {
    fn summary(&self) -> String {
        let words = |request: &InputRequest| match (request.message(), request.kind()) {
            (Some(message), _) => format!("{message:?}"),
            (None, Some(kind)) => kind.method().to_owned(),
            (None, None) => format!("something unknown under the key {:?}", request.key()),
        };
        let asked: Vec<_> = self.requests.iter().map(words).collect();
        format!("{} ({})", asked.join(", "), self.reason)
    }
}

/// The server could not be reached, or did not answer.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct TransportError {
    /// What went wrong. It never holds the token.
    pub message: String,
    /// The HTTP status, if the server answered with one.
    pub status: Option<u16>,
    /// How long the server wants to be left alone.
    pub retry_after: Option<Duration>,
    /// Whether the same request may work later.
    pub(super) is_temporary: bool,
}
