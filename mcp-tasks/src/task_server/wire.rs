//! Records as the wire has them.

use std::collections::BTreeMap;

use mcp_tasks_core::{InputRequest, Json, TaskRecord, TaskStatus};
use rmcp::ErrorData;
use rmcp::model::{
    DetailedTask, GetTaskResult, InputRequests, InputResponses, Task, TaskPayload, TaskStatus as WireStatus,
};
use serde::de::DeserializeOwned;

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

/// Questions under their keys.
pub(super) fn input_requests(open: &[InputRequest]) -> Result<InputRequests, ErrorData> {
    open.iter()
        .map(|request| Ok((request.key.to_string(), stored(request.request.decode())?)))
        .collect()
}

/// Answers under their keys, as text.
pub(super) fn responses(responses: InputResponses) -> BTreeMap<String, Json> {
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
