//! What goes over the wire, to the byte: members, their types, and what must not be there.

use serde_json::{Value, json};

use crate::protocol::harness::{Request, TASKS, Wire};

fn members(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

fn without_meta(value: &Value) -> Value {
    let mut value = value.clone();
    value.as_object_mut().unwrap().remove("_meta");
    value
}

/// An RFC 3339 time in UTC of whole milliseconds.
#[track_caller]
fn is_time(value: &Value) {
    let text = value.as_str().unwrap();
    let pattern: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let fraction = pattern.strip_prefix("0000-00-00T00:00:00").unwrap_or(text);
    assert!(matches!(fraction, "Z" | ".000Z"), "{text}");
}

/// Tasks, "Task Creation": `Result & Task`, flat; `ttlMs` is there, an integer or null.
#[tokio::test]
async fn a_created_task_is_flat_and_has_its_times_as_integers() {
    for wire in Wire::both().await {
        for (tool, ttl, poll) in [
            ("sleep", "3600000", "2000"),
            ("unlimited", "null", "20"),
            ("configured", "600000", "1000"),
        ] {
            let reply = wire.call(tool, json!({})).await;
            let result = without_meta(reply.result());
            assert_eq!(
                members(&result),
                [
                    "createdAt",
                    "lastUpdatedAt",
                    "pollIntervalMs",
                    "resultType",
                    "status",
                    "taskId",
                    "ttlMs"
                ]
            );
            assert_eq!(result["status"], "working");
            is_time(&result["createdAt"]);
            assert_eq!(result["createdAt"], result["lastUpdatedAt"]);
            for member in [format!(r#""ttlMs":{ttl}"#), format!(r#""pollIntervalMs":{poll}"#)] {
                assert_eq!(reply.text.matches(&member).count(), 1, "{member}: {}", reply.text);
                let after = reply.text.split(&member).nth(1).unwrap();
                assert!(after.starts_with([',', '}']), "{member}: {}", reply.text);
            }
        }
    }
}

/// Tasks, "Tasks": an id is what clients put into a header, so it is plain, and long enough not to be guessed.
#[tokio::test]
async fn a_task_id_is_long_plain_and_new_each_time() {
    let wire = Wire::http().await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        let id = wire.create("unlimited", json!({})).await;
        assert!(id.len() >= 22, "128 bits need 22 characters at least: {id}");
        assert!(
            id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'),
            "{id}"
        );
        assert!(!ids.contains(&id));
        ids.push(id);
    }
}

/// Tasks, "Capability Negotiation": the settings are an empty object; clients take any member for "no tasks".
#[tokio::test]
async fn discover_advertises_the_extension_with_settings_that_are_exactly_empty() {
    for wire in Wire::both().await {
        let reply = wire.ask(&Request::new("server/discover", json!({}))).await;
        assert!(
            reply.text.contains(&format!(r#""extensions":{{"{TASKS}":{{}}}}"#)),
            "{}",
            reply.text
        );
        let result = reply.result();
        assert!(result["capabilities"]["tools"].is_object());
        assert!(result["capabilities"].get("tasks").is_none());
        assert!(reply.text.contains(r#""name":"fixture""#), "{}", reply.text);
    }
}

/// Tasks, "Task Update Requests" and "Task Cancellation": an empty acknowledgement with `resultType` alone.
#[tokio::test]
async fn an_acknowledgement_is_result_type_complete_and_nothing_else() {
    for wire in Wire::both().await {
        let id = wire.create("ask", json!({})).await;
        wire.settled(&id).await;
        let answer = json!({"go": {"action": "decline"}});
        wire.ask(&Request::update(&id, answer.clone())).await.is_ack();
        wire.settled(&id).await;
        wire.ask(&Request::update(&id, answer)).await.is_ack();
        wire.ask(&Request::cancel(&id)).await.is_ack();
    }
}

/// Tasks, "Tasks": `statusMessage` is optional, so it is absent rather than null; so is everything else.
#[tokio::test]
async fn what_a_task_has_not_is_absent_and_only_an_unlimited_ttl_is_null() {
    for wire in Wire::both().await {
        let working = wire.create("sleep", json!({})).await;
        let waiting = wire.create("ask", json!({})).await;
        let completed = wire.create("unlimited", json!({})).await;
        let failed = wire.create("fail_protocol", json!({})).await;
        let cancelled = wire.create("sleep", json!({})).await;
        wire.ask(&Request::cancel(&cancelled)).await.is_ack();
        let common = [
            "createdAt",
            "lastUpdatedAt",
            "pollIntervalMs",
            "resultType",
            "status",
            "taskId",
            "ttlMs",
        ];
        for (id, status, more) in [
            (&working, "working", &[] as &[&str]),
            (&waiting, "input_required", &["inputRequests"]),
            (&completed, "completed", &["result"]),
            (&failed, "failed", &["error", "statusMessage"]),
            (&cancelled, "cancelled", &[]),
        ] {
            wire.reaches(id, status).await;
            let reply = wire.ask(&Request::get(id)).await;
            let task = without_meta(reply.result());
            let mut expected = [&common[..], more].concat();
            expected.sort_unstable();
            assert_eq!(members(&task), expected);
            assert_eq!(task["resultType"], "complete");
            is_time(&task["createdAt"]);
            is_time(&task["lastUpdatedAt"]);
            let nulls = reply.text.matches(":null").count();
            assert_eq!(nulls, usize::from(id == &completed), "{}", reply.text);
        }
    }
}

/// Tasks, "Task Polling": what is asked is shown as the client would get it as a request of its own.
#[tokio::test]
async fn input_requests_are_elicitations_under_their_keys() {
    let wire = Wire::http().await;
    let id = wire.create("ask_two", json!({})).await;
    let task = wire.settled(&id).await;
    let requests = &task["inputRequests"];
    assert_eq!(members(requests), ["a", "b"]);
    let request = &requests["a"];
    assert_eq!(members(request), ["method", "params"]);
    assert_eq!(request["method"], "elicitation/create");
    assert_eq!(request["params"]["message"], "A?");
    assert_eq!(request["params"]["mode"], "form");
    let schema = &request["params"]["requestedSchema"];
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["properties"]["confirm"]["type"], "boolean");
    assert_eq!(schema["required"], json!(["confirm"]));
}

/// Tasks, "Task Status": a tool that fails is `completed`, a JSON-RPC error is `failed` with that error.
#[tokio::test]
async fn a_tool_error_completes_and_a_protocol_error_fails_the_task() {
    for wire in Wire::both().await {
        let id = wire.create("fail", json!({})).await;
        let task = wire.settled(&id).await;
        assert_eq!(task["status"], "completed");
        assert_eq!(task["result"]["isError"], true);
        assert_eq!(task["result"]["content"][0]["text"], "out of paper");

        let id = wire.create("fail_protocol", json!({})).await;
        let task = wire.settled(&id).await;
        assert_eq!(task["status"], "failed");
        let error = json!({"code": -32100, "message": "the printer is on fire", "data": {"floor": 3}});
        assert_eq!(task["error"], error);
        assert_eq!(task["statusMessage"], "the printer is on fire");

        let synchronous = wire.ask(&Request::call("fail_protocol", json!({})).undeclared()).await;
        assert_eq!(synchronous.error(), &error);
    }
}

/// 2026-07-28, "Requests": an id is a string or an integer and comes back as it was; what else is in `_meta` is the
/// client's business.
#[tokio::test]
async fn ids_come_back_with_their_type_and_foreign_meta_is_tolerated() {
    for wire in Wire::both().await {
        let task = wire.create("sleep", json!({})).await;
        for id in [json!(0), json!("0"), json!("a-b"), json!(9_007_199_254_740_991_u64)] {
            for request in [
                Request::get(&task),
                Request::call("plain", json!({"text": "a", "times": 1})),
                Request::new("tools/list", json!({})),
            ] {
                let request = request
                    .id(id.clone())
                    .meta("progressToken", json!(0))
                    .meta("io.modelcontextprotocol/logLevel", json!("debug"))
                    .meta("logLevel", json!("debug"))
                    .meta("com.example/anything", json!({"a": [1]}));
                let reply = wire.ask(&request).await;
                assert_eq!(reply.message["id"], id);
                reply.result();
            }
        }
    }
}
