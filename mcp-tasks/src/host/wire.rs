//! The one encoder of tasks: straight to JSON text, and to rmcp's types where rmcp serialises.

use std::collections::BTreeMap;
use std::io::Write;

use mcp_tasks_core::{Json, TaskRecord, TaskStatus, Timestamp};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResponse, CreateTaskResult, DetailedTask, GetTaskResult, InputRequests, InputRequiredResult,
    InputResponses, Task, TaskPayload, TaskStatus as WireStatus,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::host::operations::Answer;

/// A task as clients see it, its members in the order in which rmcp's types have them. What a record holds as JSON is
/// copied as it is, and neither read nor printed anew.
#[derive(Debug)]
pub(crate) struct TaskJson<'a> {
    result_type: Option<&'static str>,
    /// Of a notification.
    meta: Option<&'a RawValue>,
    record: &'a TaskRecord,
    /// By their keys.
    input_requests: Option<BTreeMap<&'a str, &'a Json>>,
    result: Option<&'a Json>,
    error: Option<&'a Json>,
}

impl<'a> TaskJson<'a> {
    /// The operational data alone.
    fn seed(record: &'a TaskRecord) -> Self {
        Self {
            result_type: None,
            meta: None,
            record,
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

    /// The operational data in rmcp's type.
    fn to_task(&self) -> Task {
        let record = self.record;
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

    /// The result of `tasks/get` in rmcp's type.
    ///
    /// # Errors
    /// `-32603` for a record that holds what cannot be shown.
    pub(crate) fn to_result(&self) -> Result<GetTaskResult, ErrorData> {
        let payload = match (&self.input_requests, self.result, self.error) {
            (Some(requests), ..) => TaskPayload::InputRequired {
                input_requests: input_requests(requests.iter().map(|(key, request)| (*key, *request)))?,
            },
            (_, Some(result), _) => TaskPayload::Completed {
                result: stored(result)?,
            },
            (.., Some(error)) => TaskPayload::Failed { error: stored(error)? },
            _ if self.record.status == TaskStatus::Cancelled => TaskPayload::Cancelled,
            _ => TaskPayload::Working,
        };
        Ok(GetTaskResult::new(DetailedTask::new(self.to_task(), payload)))
    }

    /// About how many bytes of the text are copied from the record's JSON.
    pub(crate) fn payload_length(&self) -> usize {
        let payload = self.result.or(self.error).map_or(0, |json| json.get().len());
        let requests = self.input_requests.iter().flatten();
        payload
            + requests
                .map(|(key, request)| key.len() + request.get().len())
                .sum::<usize>()
    }

    /// Appends the text to `out`.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let record = self.record;
        let mut object = Object::open(out);
        if let Some(result_type) = self.result_type {
            object.plain("resultType", result_type);
        }
        if let Some(meta) = self.meta {
            object.raw("_meta", meta.get());
        }
        object.value("taskId", &record.task_id);
        object.plain("status", record.status.as_str());
        if let Some(words) = &record.status_message {
            object.value("statusMessage", words);
        }
        object.instant("createdAt", record.created_at);
        object.instant("lastUpdatedAt", record.last_updated_at);
        object.value("ttlMs", &record.ttl_ms);
        object.value("pollIntervalMs", &record.poll_interval_ms);
        if let Some(requests) = &self.input_requests {
            object.value("inputRequests", requests);
        }
        if let Some(result) = self.result {
            object.raw("result", result.get());
        }
        if let Some(error) = self.error {
            object.raw("error", error.get());
        }
        object.close();
    }
}

/// An object that is written member by member. Names and text that need no escapes, which is most of a task, are copied;
/// serde_json would look at each of their bytes, and that is most of what it spends on them.
struct Object<'a> {
    out: &'a mut Vec<u8>,
    /// What stands before the next member.
    before: u8,
}

impl<'a> Object<'a> {
    const fn open(out: &'a mut Vec<u8>) -> Self {
        Self { out, before: b'{' }
    }

    /// Where the value of the member is to be written.
    fn member(&mut self, name: &'static str) -> &mut Vec<u8> {
        self.out.push(self.before);
        self.before = b',';
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// Text that needs no escapes.
    fn plain(&mut self, name: &'static str, text: &str) {
        let out = self.member(name);
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    }

    fn instant(&mut self, name: &'static str, at: Timestamp) {
        // A vector takes all that is written.
        let _ = write!(self.member(name), "\"{at}\"");
    }

    /// JSON as it is.
    fn raw(&mut self, name: &'static str, json: &str) {
        self.member(name).extend_from_slice(json.as_bytes());
    }

    /// Anything else, of what cannot fail: text, numbers, and JSON under keys that are text.
    fn value(&mut self, name: &'static str, value: &impl Serialize) {
        let _ = serde_json::to_writer(self.member(name), value);
    }

    /// To be called after at least one member.
    fn close(self) {
        self.out.push(b'}');
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

/// The answer to a call in rmcp's type.
///
/// # Errors
/// `-32603` when a question cannot be shown.
pub(crate) fn call_response(answer: Answer) -> Result<CallToolResponse, ErrorData> {
    Ok(match answer {
        Answer::Result(result) => (*result).into(),
        Answer::Task(record) => CreateTaskResult::new(TaskJson::created(&record).to_task()).into(),
        Answer::InputRequired { open, state } => {
            let requests = input_requests(open.iter().map(|asked| (&*asked.key, &asked.request)))?;
            InputRequiredResult::new(Some(requests), Some(state)).into()
        }
    })
}

/// Questions by their keys, in rmcp's type.
fn input_requests<'a>(open: impl Iterator<Item = (&'a str, &'a Json)>) -> Result<InputRequests, ErrorData> {
    open.map(|(key, request)| Ok((key.to_owned(), stored(request)?)))
        .collect()
}

/// Answers by their keys, as text.
pub(crate) fn responses(responses: &InputResponses) -> BTreeMap<String, Json> {
    // A `Value` has a JSON form.
    responses
        .iter()
        .filter_map(|(key, response)| Some((key.clone(), Json::of(response).ok()?)))
        .collect()
}

fn stored<T: DeserializeOwned>(json: &Json) -> Result<T, ErrorData> {
    json.decode().map_err(|error| unusable(&error.to_string()))
}

fn unusable(detail: &str) -> ErrorData {
    tracing::error!(detail, "a stored task cannot be shown");
    ErrorData::internal_error("The stored task cannot be shown; see the server's log", None)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mcp_tasks_core::{ClientCapabilities, TaskId};
    use serde_json::json;

    use super::*;

    fn record(status: TaskStatus) -> TaskRecord {
        let mut record = TaskRecord::new(
            // Other programs may write to a store too.
            TaskId::new("a\"b\\c\u{1}"),
            "tool".into(),
            Json::of(&json!({})).unwrap(),
            ClientCapabilities::new(Json::of(&json!({})).unwrap()),
            Timestamp::from_millis(1_785_196_800_250),
            None,
            Duration::from_secs(1),
        );
        record.status = status;
        record.last_updated_at = Timestamp::from_millis(1_785_196_800_999);
        record.result = Some(Json::of(&json!({"content": "\n"})).unwrap());
        record.error = Some(Json::of(&json!({"code": -32603, "message": "\t"})).unwrap());
        record
    }

    #[test]
    fn text_says_what_rmcps_types_say_to_the_byte() {
        for status in [
            TaskStatus::Working,
            TaskStatus::InputRequired,
            TaskStatus::Completed,
            TaskStatus::Failed,
            TaskStatus::Cancelled,
        ] {
            for (words, ttl_ms) in [(None, None), (Some("a \"word\"\n\u{7f}é"), Some(u64::MAX))] {
                let mut record = record(status);
                record.status_message = words.map(Into::into);
                record.ttl_ms = ttl_ms;
                let mut text = Vec::new();
                let task = TaskJson::polled(&record).unwrap();
                task.write(&mut text);
                let theirs = serde_json::to_string(&task.to_result().unwrap()).unwrap();
                assert_eq!(String::from_utf8(text).unwrap(), theirs);
            }
        }
    }
}
