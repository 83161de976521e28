//! How a call or a task fails for the client.

use std::fmt;
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use serde_json::Value;

use super::input::NO_HANDLER;
use super::malformed::Malformed;
use super::{InputRequest, InputSupport, SavedTask};
use mcp_tasks_core::TaskId;

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
    /// The task has ended with a JSON-RPC error. The text has the error's message, or what the server said about the task
    /// where that says more.
    #[error(
        "the task {id} has failed: {} ({}){}",
        failure_message(.error, .status_message.as_deref()),
        .error.code.0,
        Hint(.hint)
    )]
    #[non_exhaustive]
    Failed {
        /// The task.
        id: TaskId,
        /// The error.
        error: Box<ErrorData>,
        /// What the server said about it.
        status_message: Option<String>,
        /// What this side can do about it, where the client knows.
        hint: Option<&'static str>,
    },
    /// The task was cancelled.
    #[error("the task {id} was cancelled")]
    #[non_exhaustive]
    Cancelled {
        /// The task.
        id: TaskId,
        /// What the server said about it.
        status_message: Option<String>,
    },
    /// The server asks something that this client has no handler for.
    #[error("{0}")]
    InputNeeded(Box<InputNeeded>),
    /// The server wants a capability that this client does not declare.
    #[error("the server needs a capability that this client does not have: {message}{}", Hint(.hint))]
    #[non_exhaustive]
    MissingCapability {
        /// The server's words.
        message: String,
        /// The capabilities it names, or null.
        required: Value,
        /// What this side can do about it, where the client knows.
        hint: Option<&'static str>,
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
    /// The task that goes on after the wait has ended with this error; [resume](super::TaskClient::resume) it later.
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
    pub(super) fn with_task(mut self, saved: &SavedTask) -> Self {
        if let Self::Transport { task, .. } | Self::Protocol { task, .. } = &mut self {
            *task = Some(Box::new(saved.clone()));
        }
        self
    }

    /// An error in answer to a request that is no `tasks/*`.
    pub(super) fn refused(error: ErrorData) -> Self {
        match required(&error).cloned() {
            Some(required) => Self::MissingCapability {
                message: error.message.into_owned(),
                required,
                hint: None,
            },
            None => Self::Refused(error),
        }
    }

    /// Says how to give the client a handler, where that is what a question needs. `input_support` says what the client has.
    pub(super) fn with_handler_hint(mut self, input_support: &InputSupport) -> Self {
        let (required, hint) = match &mut self {
            Self::MissingCapability { required, hint, .. } => (Some(&*required), hint),
            Self::Failed { error, hint, .. } => (required(error), hint),
            _ => return self,
        };
        let asks = required.is_some_and(|required| {
            ["elicitation", "sampling", "roots"]
                .iter()
                .any(|capability| required.get(capability).is_some())
        });
        if asks && !input_support.has_handler() {
            *hint = Some(NO_HANDLER);
        }
        self
    }
}

/// The capabilities that an error asks for, or null; nothing if it is another error.
fn required(error: &ErrorData) -> Option<&Value> {
    // -32003 is what this code was in drafts, and what servers of that time still send.
    let asks = [ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY.0, -32003].contains(&error.code.0);
    let named = || error.data.as_ref()?.get("requiredCapabilities");
    asks.then(|| named().unwrap_or(&Value::Null))
}

/// The words for a task's error: the status message where the error's own says less, such as no more than what its code
/// means.
fn failure_message<'a>(error: &'a ErrorData, status_message: Option<&'a str>) -> &'a str {
    let message = error.message.trim();
    match status_message.map(str::trim) {
        Some(status) if !status.is_empty() && (is_generic(message) || extends(status, message)) => status,
        _ => message,
    }
}

/// Whether an error's message is only what its code means (JSON-RPC 2.0, "Error object"), or less.
fn is_generic(message: &str) -> bool {
    let message = message.trim_end_matches(['.', ':', '!']);
    [
        "",
        "error",
        "failed",
        "server error",
        "internal error",
        "internal server error",
        "unknown error",
    ]
    .iter()
    .any(|generic| message.eq_ignore_ascii_case(generic))
}

/// Whether a status message is an error's message with more behind it.
fn extends(status: &str, message: &str) -> bool {
    status
        .strip_prefix(message)
        .is_some_and(|more| !more.starts_with(char::is_alphanumeric))
}

/// The end of a sentence with what to do.
struct Hint<'a>(&'a Option<&'static str>);

impl fmt::Display for Hint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
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
    /// How long to wait before the next request (`Retry-After`).
    pub retry_after: Option<Duration>,
    /// Whether the same request may work later.
    pub(super) is_temporary: bool,
    /// Whether the server is a child process that was started and then answered nothing, as one does that serves HTTP.
    pub is_silent_child: bool,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn failed(message: &str, status_message: Option<&str>) -> String {
        let error = ClientError::Failed {
            id: TaskId::new("t1"),
            error: Box::new(ErrorData::internal_error(message.to_owned(), None)),
            status_message: status_message.map(str::to_owned),
            hint: None,
        };
        error.to_string()
    }

    #[test]
    fn a_failure_is_told_in_the_words_that_say_more() {
        let gone = "the task t1 has failed: the node is gone (-32603)";
        for message in ["Internal error", "", "internal error.", "the node", "the node is gone"] {
            assert_eq!(failed(message, Some("the node is gone")), gone, "{message:?}");
        }
        for status in [
            None,
            Some(""),
            Some(" "),
            Some("2/3: rendered"),
            Some("the node is goner"),
        ] {
            assert_eq!(failed("the node is gone", status), gone, "{status:?}");
        }
        assert_eq!(
            failed("Internal error", None),
            "the task t1 has failed: Internal error (-32603)"
        );
    }

    /// A client without a handler is told where one goes, if it is a question that the server could not ask.
    #[test]
    fn a_missing_handler_is_named() {
        let told = |required: Value| {
            let data = json!({"requiredCapabilities": required});
            let error = ErrorData::new(ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY, "no", Some(data));
            let hinted = |error: ClientError| {
                error
                    .with_handler_hint(&InputSupport::none())
                    .to_string()
                    .contains(NO_HANDLER)
            };
            let failed = ClientError::Failed {
                id: TaskId::new("t1"),
                error: Box::new(error.clone()),
                status_message: None,
                hint: None,
            };
            (hinted(ClientError::refused(error)), hinted(failed))
        };
        for required in [
            json!({"elicitation": {"form": {}}}),
            json!({"sampling": {}}),
            json!({"roots": {}}),
        ] {
            assert_eq!(told(required.clone()), (true, true), "{required}");
        }
        for required in [json!(null), json!({"extensions": {}}), json!("roots")] {
            assert_eq!(told(required.clone()), (false, false), "{required}");
        }
    }
}
