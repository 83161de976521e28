//! A task as a server describes it.

use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use serde_json::{Map, Value};

use super::malformed::Malformed;
use super::{InputRequest, ToolResult};
use mcp_tasks_core::{TaskId, Timestamp};

/// The status of a task, with what belongs to it.
///
/// There is no completed task without a result, and none that asks for input without saying what.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the protocol has five states, and a caller handles all of them"
)]
pub enum TaskState {
    /// The server works on it.
    Working,
    /// The server waits for answers.
    #[non_exhaustive]
    InputRequired {
        /// What it asks, in the server's order. A server may show none for a moment, while it takes an answer in.
        requests: Vec<InputRequest>,
    },
    /// It has ended with a result, which may be the error of a tool ([`ToolResult::is_error`]).
    #[non_exhaustive]
    Completed {
        /// What `tools/call` would have returned.
        result: ToolResult,
    },
    /// It has ended with a JSON-RPC error.
    #[non_exhaustive]
    Failed {
        /// The error.
        error: ErrorData,
    },
    /// It was cancelled.
    Cancelled,
}

impl TaskState {
    /// Whether nothing will change any more.
    #[must_use]
    pub const fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed { .. } | Self::Failed { .. } | Self::Cancelled)
    }

    /// The status as the protocol spells it.
    #[must_use]
    pub const fn status(&self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired { .. } => "input_required",
            Self::Completed { .. } => "completed",
            Self::Failed { .. } => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A task as a server described it at one moment (Tasks extension, `DetailedTask`).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DetailedTask {
    /// The task.
    pub id: TaskId,
    /// Its state.
    pub state: TaskState,
    /// What it says about its state, such as how far it is.
    pub status_message: Option<String>,
    /// When the server created it. `None` if the server did not say so in a readable way.
    pub created_at: Option<Timestamp>,
    /// When the server last changed it. Some servers move this without a change.
    pub last_updated_at: Option<Timestamp>,
    /// How long from its creation the server keeps it. `None` if that is unlimited, or not said.
    pub ttl: Option<Duration>,
    /// How often the server wants to be asked.
    pub poll_interval: Option<Duration>,
    raw: Map<String, Value>,
}

impl DetailedTask {
    /// Everything the server said, members included that the protocol does not know.
    #[must_use]
    pub const fn raw(&self) -> &Map<String, Value> {
        &self.raw
    }

    /// Decodes a task with its payload: the answer to `tasks/get`, or a notification.
    pub(super) fn decode(raw: Map<String, Value>) -> Result<Self, Malformed> {
        let state = match status(&raw)? {
            "working" => TaskState::Working,
            "input_required" => TaskState::InputRequired {
                requests: requests(raw.get("inputRequests"))?,
            },
            "completed" => match raw.get("result") {
                Some(Value::Object(result)) => TaskState::Completed {
                    result: ToolResult::decode(result.clone())?,
                },
                _ => return Err(Malformed::new("a completed task without a result")),
            },
            "failed" => TaskState::Failed { error: error(&raw) },
            "cancelled" => TaskState::Cancelled,
            other => return Err(Malformed::new(format!("a task with the unknown status {other:?}"))),
        };
        Self::of(raw, state)
    }

    /// Decodes what a call became. It says which task that is and how to ask for it; a payload has no place in it, so a
    /// task that has ended already is asked for like any other.
    pub(super) fn decode_created(raw: Map<String, Value>) -> Result<Self, Malformed> {
        match status(&raw)? {
            "working" | "input_required" => {}
            ended @ ("completed" | "failed" | "cancelled") => {
                tracing::debug!(status = ended, "the server handed out a task that has ended already");
            }
            other => return Err(Malformed::new(format!("a new task with the unknown status {other:?}"))),
        }
        Self::of(raw, TaskState::Working)
    }

    fn of(raw: Map<String, Value>, state: TaskState) -> Result<Self, Malformed> {
        if !raw.contains_key("ttlMs") {
            tracing::debug!("a task without a ttlMs: it is taken as not limited");
        }
        let id = match raw.get("taskId") {
            Some(Value::String(id)) if !id.is_empty() => TaskId::new(id),
            _ => return Err(Malformed::new("a task without a taskId")),
        };
        Ok(Self {
            id,
            state,
            status_message: raw.get("statusMessage").and_then(Value::as_str).map(str::to_owned),
            created_at: instant(&raw, "createdAt"),
            last_updated_at: instant(&raw, "lastUpdatedAt"),
            ttl: millis(&raw, "ttlMs"),
            poll_interval: millis(&raw, "pollIntervalMs"),
            raw,
        })
    }
}

fn status(raw: &Map<String, Value>) -> Result<&str, Malformed> {
    raw.get("status")
        .and_then(Value::as_str)
        .ok_or_else(|| Malformed::new("a task without a status"))
}

/// What is asked. Input requests are an object everywhere in the protocol.
pub(super) fn requests(value: Option<&Value>) -> Result<Vec<InputRequest>, Malformed> {
    match value {
        Some(Value::Object(requests)) => Ok(requests
            .iter()
            .map(|(key, request)| InputRequest::decode(key, request))
            .collect()),
        None | Some(Value::Null) => {
            tracing::debug!("a task asks for input and does not say which");
            Ok(Vec::new())
        }
        Some(_) => Err(Malformed::new("inputRequests that are no object")),
    }
}

/// A task that failed has failed, whatever the server has to say about it.
fn error(raw: &Map<String, Value>) -> ErrorData {
    let error = raw.get("error");
    if !raw.contains_key("statusMessage") {
        tracing::debug!("a task failed without a statusMessage");
    }
    if let Some(error) = error.and_then(|error| serde_json::from_value(error.clone()).ok()) {
        return error;
    }
    tracing::debug!("a task failed without a JSON-RPC error");
    let words = error
        .and_then(|error| error.get("message").unwrap_or(error).as_str())
        .or_else(|| raw.get("statusMessage").and_then(Value::as_str))
        .unwrap_or("the server did not say why");
    ErrorData::new(ErrorCode::INTERNAL_ERROR, words.to_owned(), error.cloned())
}

/// An instant of RFC 3339, with any number of decimals and any offset.
fn instant(raw: &Map<String, Value>, member: &str) -> Option<Timestamp> {
    let value = raw.get(member)?;
    let instant = value.as_str().and_then(parse_instant);
    if instant.is_none() {
        tracing::debug!(member, %value, "the server sent an instant that cannot be read");
    }
    instant
}

/// Cut to whole milliseconds; an instant before 1970 cannot be held.
fn parse_instant(text: &str) -> Option<Timestamp> {
    let instant: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(instant.as_millisecond()).ok().map(Timestamp::from_millis)
}

/// A number of milliseconds, which some servers write as `500.0`. What makes no sense is as if it were not there.
fn millis(raw: &Map<String, Value>, member: &str) -> Option<Duration> {
    let value = raw.get(member).filter(|value| !value.is_null())?;
    let duration = value.as_u64().map(Duration::from_millis).or_else(|| {
        let millis = value.as_f64().filter(|millis| *millis >= 0.0)?;
        Duration::try_from_secs_f64(millis / 1000.0).ok()
    });
    match duration {
        None => tracing::debug!(member, %value, "the server sent a duration that makes no sense"),
        Some(_) if !value.is_u64() => tracing::debug!(member, %value, "the server sent a duration that is no integer"),
        Some(_) => {}
    }
    duration
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn decode(value: Value) -> Result<DetailedTask, Malformed> {
        let Value::Object(raw) = value else { panic!("{value}") };
        DetailedTask::decode(raw)
    }

    /// Tasks, "Task Status": what belongs to a state is there or the task is refused.
    #[test]
    fn a_completed_task_has_a_result() {
        for result in [json!(null), json!("text"), json!({}), json!({"resultType": "complete"})] {
            let task = json!({"taskId": "t", "status": "completed", "result": result});
            assert!(decode(task.clone()).is_err(), "{task}");
        }
        assert!(decode(json!({"taskId": "t", "status": "completed"})).is_err());
        let task = decode(json!({"taskId": "t", "status": "completed", "result": {"content": []}})).unwrap();
        assert!(task.state.is_terminal());
    }

    #[test]
    fn what_is_no_task_is_refused() {
        for task in [
            json!({}),
            json!({"taskId": "t"}),
            json!({"taskId": "", "status": "working"}),
            json!({"taskId": 7, "status": "working"}),
            json!({"taskId": "t", "status": "resting"}),
            json!({"taskId": "t", "status": 1}),
            json!({"taskId": "t", "status": "input_required", "inputRequests": []}),
        ] {
            assert!(decode(task.clone()).is_err(), "{task}");
        }
    }

    #[test]
    fn odd_times_are_read_or_left_out() {
        let at = |text: &str| parse_instant(text).map(|at| at.to_string());
        let expected = Some("2026-07-28T00:00:00.500Z".to_owned());
        assert_eq!(at("2026-07-28T00:00:00.500123456Z"), expected);
        assert_eq!(at("2026-07-28T02:00:00.5+02:00"), expected);
        assert_eq!(at("2026-07-27T19:30:00.500-04:30"), expected);
        for odd in [
            "",
            "yesterday",
            "2026-07-28",
            "+02:00",
            "2026-07-28T00:00:00é:00",
            "99999999",
        ] {
            assert_eq!(at(odd), None, "{odd}");
        }
        for (value, expected) in [
            (json!(500), Some(500)),
            (json!(500.0), Some(500)),
            (json!(0.5), Some(0)),
            (json!(null), None),
            (json!(-1), None),
            (json!("500"), None),
            (json!(1e300), None),
        ] {
            let task = decode(json!({"taskId": "t", "status": "working", "ttlMs": value})).unwrap();
            let ttl = task.ttl.map(|ttl| ttl.as_millis());
            assert_eq!(ttl, expected, "{value}");
        }
    }

    #[test]
    fn a_failure_without_an_error_is_a_failure() {
        for task in [
            json!({"taskId": "t", "status": "failed"}),
            json!({"taskId": "t", "status": "failed", "error": {"code": "E", "message": "m"}}),
            json!({"taskId": "t", "status": "failed", "error": 1, "statusMessage": "m"}),
        ] {
            assert!(matches!(decode(task).unwrap().state, TaskState::Failed { .. }));
        }
    }

    #[test]
    fn unknown_members_are_kept() {
        let task = decode(json!({"taskId": "t", "status": "working", "x": {"y": 1}})).unwrap();
        assert_eq!(task.raw()["x"]["y"], 1);
    }
}
