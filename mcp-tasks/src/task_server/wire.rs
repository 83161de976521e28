//! Records as the wire has them: for rmcp in its types, and straight as JSON, which says the same in the same bytes.

use std::collections::BTreeMap;

use mcp_tasks_core::{InputRequest, Json, TaskId, TaskRecord, TaskStatus, Timestamp};
use rmcp::ErrorData;
use rmcp::model::{
    DetailedTask, GetTaskResult, InputRequests, InputResponses, Task, TaskPayload, TaskStatus as WireStatus,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// The operational data of a task (Tasks extension, "Tasks").
pub(super) fn task(record: &TaskRecord) -> Task {
    let mut task = Task::new(
        record.task_id.as_str(),
        match record.status {
            TaskStatus::InputRequired => WireStatus::InputRequired,
            TaskStatus::Completed => WireStatus::Completed,
            TaskStatus::Failed => WireStatus::Failed,
            TaskStatus::Cancelled => WireStatus::Cancelled,
            _ => WireStatus::Working,
        },
        record.created_at.to_string(),
        record.last_updated_at.to_string(),
    );
    task.status_message = record.status_message.as_deref().map(str::to_owned);
    task.ttl_ms = record.ttl_ms;
    task.poll_interval_ms = Some(record.poll_interval_ms);
    task
}

/// The task with what its status carries (Tasks extension, "Task Polling").
pub(super) fn detailed(record: &TaskRecord) -> Result<GetTaskResult, ErrorData> {
    let payload = match record.status {
        TaskStatus::InputRequired => {
            let input_requests = input_requests(&record.open)?;
            TaskPayload::InputRequired { input_requests }
        }
        TaskStatus::Completed => TaskPayload::Completed {
            result: member(record.result.as_ref())?,
        },
        TaskStatus::Failed => TaskPayload::Failed {
            error: member(record.error.as_ref())?,
        },
        TaskStatus::Cancelled => TaskPayload::Cancelled,
        _ => TaskPayload::Working,
    };
    Ok(GetTaskResult::new(DetailedTask::new(task(record), payload)))
}

/// A record as JSON, its members in the order in which rmcp's types have them. What a record holds as JSON is copied as it
/// is, and neither read nor printed anew.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    /// Of a notification.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'a RawValue>,
    task_id: &'a TaskId,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_message: Option<&'a str>,
    created_at: Timestamp,
    last_updated_at: Timestamp,
    ttl_ms: Option<u64>,
    poll_interval_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_requests: Option<BTreeMap<&'a str, &'a Json>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Json>,
}

impl<'a> TaskJson<'a> {
    /// The operational data alone.
    fn seed(record: &'a TaskRecord) -> Self {
        Self {
            result_type: None,
            meta: None,
            task_id: &record.task_id,
            status: record.status.as_str(),
            status_message: record.status_message.as_deref(),
            created_at: record.created_at,
            last_updated_at: record.last_updated_at,
            ttl_ms: record.ttl_ms,
            poll_interval_ms: record.poll_interval_ms,
            input_requests: None,
            result: None,
            error: None,
        }
    }

    /// The task with what its status carries (Tasks extension, "Task Polling").
    fn detailed(record: &'a TaskRecord) -> Result<Self, ErrorData> {
        let mut task = Self::seed(record);
        match record.status {
            TaskStatus::InputRequired => {
                let open = record.open.iter().map(|asked| (&*asked.key, &asked.request));
                task.input_requests = Some(open.collect());
            }
            TaskStatus::Completed => task.result = Some(object(record.result.as_ref())?),
            TaskStatus::Failed => task.error = Some(object(record.error.as_ref())?),
            _ => {}
        }
        Ok(task)
    }

    /// The result of the call that created the task.
    pub(crate) fn created(record: &'a TaskRecord) -> Self {
        Self {
            result_type: Some("task"),
            ..Self::seed(record)
        }
    }

    /// The result of `tasks/get`.
    ///
    /// # Errors
    /// `-32603` for a record that holds what cannot be shown.
    pub(crate) fn polled(record: &'a TaskRecord) -> Result<Self, ErrorData> {
        Ok(Self {
            result_type: Some("complete"),
            ..Self::detailed(record)?
        })
    }

    /// The params of `notifications/tasks`.
    ///
    /// # Errors
    /// As [`polled`](Self::polled).
    pub(crate) fn notified(record: &'a TaskRecord, meta: &'a RawValue) -> Result<Self, ErrorData> {
        Ok(Self {
            meta: Some(meta),
            ..Self::detailed(record)?
        })
    }
}

/// A member that has to be there, and an object.
fn object(json: Option<&Json>) -> Result<&Json, ErrorData> {
    match json {
        Some(json) if json.get().starts_with('{') => Ok(json),
        Some(_) => Err(unusable("a member is no object")),
        None => Err(unusable("a member is missing")),
    }
}

/// Questions under their keys.
pub(super) fn input_requests(open: &[InputRequest]) -> Result<InputRequests, ErrorData> {
    open.iter()
        .map(|request| Ok((request.key.to_string(), stored(request.request.decode())?)))
        .collect()
}

/// Answers under their keys, as text.
pub(crate) fn responses(responses: InputResponses) -> BTreeMap<String, Json> {
    // A `Value` has a JSON form.
    responses
        .into_iter()
        .filter_map(|(key, response)| Some((key, Json::of(&response).ok()?)))
        .collect()
}

fn member<T: DeserializeOwned>(json: Option<&Json>) -> Result<T, ErrorData> {
    match json {
        Some(json) => stored(json.decode()),
        None => Err(unusable("a member is missing")),
    }
}

fn stored<T>(decoded: Result<T, serde_json::Error>) -> Result<T, ErrorData> {
    decoded.map_err(|error| unusable(&error.to_string()))
}

fn unusable(detail: &str) -> ErrorData {
    tracing::error!(detail, "a stored task cannot be shown");
    ErrorData::internal_error("The stored task cannot be shown; see the server's log", None)
}
