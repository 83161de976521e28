//! Tasks with one member that is not what it should be: whatever it is, the wait ends, and not in a hot loop.

use std::time::Duration;

use mcp_tasks::client::{ClientError, TaskClient};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::client::harness::{Reply, Script, User, created, done, task};

/// Values of every kind, none of which every member can be.
fn odd() -> Vec<Value> {
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    vec![
        Value::Null,
        json!(true),
        json!(-1),
        json!(0),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!("x".repeat(100_000)),
        json!("\u{0}\u{202e}"),
        json!("-9999-99-99T99:99:99Z"),
        json!([]),
        json!([null, {}]),
        json!({}),
        json!({"": null}),
        json!({"k": 7, "l": {"method": 7, "params": []}, "m": {"method": "elicitation/create"}}),
        json!({"code": 1e9, "message": null}),
        json!({"content": [7, {"type": "text"}], "isError": "no"}),
        deep,
    ]
}

/// A task of every status.
fn shown() -> Vec<Value> {
    let form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
    let result = json!({"content": [{"type": "text", "text": "done"}], "isError": false, "structuredContent": {}});
    vec![
        task("working", json!({"statusMessage": "at work"})),
        task(
            "input_required",
            json!({"inputRequests": {"k": {"method": "elicitation/create", "params": form}}}),
        ),
        task("completed", json!({"result": result})),
        task("failed", json!({"error": {"code": -32603, "message": "broken"}})),
        task("cancelled", json!({})),
    ]
}

/// Every way to put an odd value somewhere, two levels deep, or to leave a member out.
fn variants(of: &Value) -> Vec<Value> {
    let mut variants = Vec::new();
    let members: Vec<String> = of.as_object().unwrap().keys().cloned().collect();
    for member in members {
        let mut without = of.clone();
        without.as_object_mut().unwrap().remove(&member);
        variants.push(without);
        for value in odd() {
            let mut variant = of.clone();
            variant[&member] = value;
            variants.push(variant);
        }
        let inner = of[&member]
            .as_object()
            .map(|inner| inner.keys().cloned().collect::<Vec<_>>());
        for inner in inner.unwrap_or_default() {
            for value in odd() {
                let mut variant = of.clone();
                variant[&member][&inner] = value;
                variants.push(variant);
            }
        }
    }
    variants
}

/// What is shown three times, and then a task that is done.
async fn waited(first: Value, shown: Value) {
    let what = format!("{first:.300} {shown:.300}");
    let script = Script::new(move |asked| match asked.method.as_str() {
        "tools/call" => Reply::Result(first.clone()),
        "tasks/get" if asked.before < 3 => Reply::Result(shown.clone()),
        "tasks/get" => Reply::Result(done()),
        "tasks/update" => Reply::Result(json!({"resultType": "complete"})),
        _ => Reply::Error(-32601, "no"),
    });
    let served = script.in_memory(TaskClient::builder().input(User::new())).await;
    let begin = Instant::now();
    let waiting = served.client.call_and_wait("tool", json!({}));
    // Four looks, at most the longest interval apart.
    let outcome = tokio::time::timeout(Duration::from_secs(1500), waiting).await;
    match outcome.unwrap_or_else(|_| panic!("no end: {what}")) {
        Ok(_)
        | Err(
            ClientError::Protocol { .. }
            | ClientError::Failed { .. }
            | ClientError::Cancelled { .. }
            | ClientError::Expired(_)
            | ClientError::InputNeeded(_),
        ) => {}
        Err(error) => panic!("{what}: {error:?}"),
    }
    let most = 4 + begin.elapsed().as_millis() / 100;
    assert!(served.asked("tasks/get").len() as u128 <= most, "{what}");
}

#[tokio::test(start_paused = true)]
async fn a_look_with_an_odd_member_ends() {
    for shown in shown() {
        for variant in variants(&shown) {
            waited(created(), variant).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_handed_out_with_an_odd_member_ends() {
    for variant in variants(&created()) {
        waited(variant, done()).await;
    }
}
