//! What an answer means: decided by the request it answers, and then by its `resultType`.

use serde_json::{Map, Value};

use super::malformed::Malformed;
use super::task::requests;
use super::{DetailedTask, InputRequest, ToolResult};
use mcp_tasks_core::TaskId;

/// What answers `tools/call`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CallResponse {
    Complete(ToolResult),
    Task(DetailedTask),
    InputRequired {
        requests: Vec<InputRequest>,
        state: Option<Value>,
    },
}

/// Base protocol, "Responses": an absent `resultType` is `complete`.
fn result_type(result: &Map<String, Value>) -> Result<&str, Malformed> {
    match result.get("resultType") {
        None => Ok("complete"),
        Some(Value::String(kind)) => Ok(kind),
        Some(_) => Err(Malformed::new("a resultType that is no text")),
    }
}

fn object(result: Value) -> Result<Map<String, Value>, Malformed> {
    match result {
        Value::Object(object) => Ok(object),
        _ => Err(Malformed::new("a result that is no object")),
    }
}

/// The answer to `tools/call`. A task is an answer to a request that declared the extension, and to no other.
pub(super) fn decode_call(result: Value, declared: bool) -> Result<CallResponse, Malformed> {
    let result = object(result)?;
    match result_type(&result)? {
        "complete" if result.contains_key("taskId") && !result.contains_key("content") => Err(Malformed::new(
            "a task that does not say so: its resultType is not \"task\"",
        )),
        "complete" => ToolResult::decode(result).map(CallResponse::Complete),
        "task" if declared => DetailedTask::decode_created(result).map(CallResponse::Task),
        "task" => Err(Malformed::new("a task to a request that did not allow one")),
        "input_required" => {
            let state = result.get("requestState").filter(|state| !state.is_null()).cloned();
            let asked = match result.get("inputRequests") {
                None | Some(Value::Null) => Vec::new(),
                some => requests(some)?,
            };
            if state.is_none() && asked.is_empty() {
                return Err(Malformed::new("input_required without inputRequests and requestState"));
            }
            Ok(CallResponse::InputRequired { requests: asked, state })
        }
        other => Err(unexpected(other, "tools/call")),
    }
}

fn unexpected(kind: &str, method: &str) -> Malformed {
    Malformed::new(format!("the resultType {kind:?}, which does not answer {method}"))
}

fn complete(result: Value, method: &str) -> Result<Map<String, Value>, Malformed> {
    let result = object(result)?;
    match result_type(&result)? {
        "complete" => Ok(result),
        other => Err(unexpected(other, method)),
    }
}

/// The answer to `tasks/get` of `id`.
pub(super) fn decode_task(result: Value, id: &TaskId) -> Result<DetailedTask, Malformed> {
    let task = DetailedTask::decode(complete(result, "tasks/get")?)?;
    if task.id != *id {
        return Err(Malformed::new("another task than the one that was asked for"));
    }
    Ok(task)
}

/// The answer to `tasks/update` and `tasks/cancel`.
pub(super) fn decode_acknowledgement(result: Value, method: &str) -> Result<(), Malformed> {
    let result = complete(result, method)?;
    let extra = result.keys().any(|member| member != "resultType" && member != "_meta");
    if extra {
        tracing::debug!(method, "the acknowledgement has more in it than the protocol says");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn created() -> Value {
        json!({
            "resultType": "task", "taskId": "t1", "status": "working", "ttlMs": 1000,
            "createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "2026-07-28T00:00:00Z",
        })
    }

    fn without(mut value: Value, member: &str) -> Value {
        value.as_object_mut().unwrap().remove(member);
        value
    }

    /// Tasks, "Polymorphic Results".
    #[test]
    fn a_task_is_told_by_its_result_type_and_by_the_request() {
        assert!(matches!(decode_call(created(), true), Ok(CallResponse::Task(task)) if task.id.as_str() == "t1"));
        assert!(decode_call(without(created(), "resultType"), true).is_err());
        assert!(decode_call(created(), false).is_err());
        assert!(decode_task(created(), &TaskId::new("t1")).is_err());
        assert!(decode_acknowledgement(created(), "tasks/update").is_err());
    }

    #[test]
    fn nothing_but_a_result_is_a_result() {
        for answer in [
            json!({}),
            json!({"resultType": "complete"}),
            json!({"resultType": "complete", "_meta": {}}),
            json!({"resultType": "complete", "content": "text"}),
            json!({"resultType": "complete", "content": null}),
            json!({"resultType": "novel", "content": []}),
            json!({"resultType": 1, "content": []}),
            json!({"resultType": null, "content": []}),
            json!({"resultType": "input_required"}),
            json!([]),
            json!(null),
            json!("text"),
        ] {
            assert!(decode_call(answer.clone(), true).is_err(), "{answer}");
        }
        for answer in [
            json!({"content": []}),
            json!({"structuredContent": null, "isError": false}),
            json!({"isError": true}),
        ] {
            assert!(matches!(decode_call(answer, true), Ok(CallResponse::Complete(_))));
        }
    }

    #[test]
    fn unknown_members_are_kept() {
        let answer = json!({
            "resultType": "complete", "content": [{"type": "hologram", "x": 1}], "action": "accept", "taskId": "odd",
        });
        let Ok(CallResponse::Complete(result)) = decode_call(answer.clone(), true) else {
            panic!("no result")
        };
        assert_eq!(Value::Object(result.raw().clone()), answer);
        decode_acknowledgement(json!({"resultType": "complete", "_meta": {}, "x": 1}), "tasks/update").unwrap();
        decode_acknowledgement(json!({}), "tasks/cancel").unwrap();
        let round = json!({
            "resultType": "input_required", "_meta": {}, "requestState": "s", "x": 1,
            "inputRequests": {"b": {"method": "roots/list"}, "a": {"method": "x/y", "params": {"z": 1}}},
        });
        let Ok(CallResponse::InputRequired { requests, state }) = decode_call(round, true) else {
            panic!("no round")
        };
        assert_eq!(state, Some(json!("s")));
        let keys: Vec<_> = requests.iter().map(InputRequest::key).collect();
        assert_eq!(keys, ["b", "a"]);
        assert_eq!(requests[1].raw()["params"]["z"], 1);
    }
}
