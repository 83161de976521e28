//! Cancelling a task, wherever it is in its life.

use serde_json::json;

use crate::protocol::harness::{Request, Wire, words};

/// Tasks, "Task Cancellation": acknowledged with an empty result; a parked task is cancelled where it lies.
#[tokio::test]
async fn a_parked_task_is_cancelled_where_it_lies() {
    for wire in Wire::both().await {
        let id = wire.create("ask", json!({})).await;
        wire.reaches(&id, "input_required").await;
        wire.ask(&Request::cancel(&id)).await.is_ack();
        let task = wire.task(&id).await;
        assert_eq!(task["status"], "cancelled");
        assert!(task.get("inputRequests").is_none());
        // An answer comes too late, and changes nothing.
        let late = Request::update(&id, json!({"go": {"action": "accept", "content": {"confirm": true}}}));
        wire.ask(&late).await.is_ack();
        assert_eq!(wire.task(&id).await, task);
        assert_eq!(wire.seen().await.count("ask"), 1);
    }
}

/// Tasks, "Task Cancellation": a body that sleeps is dropped at its await.
#[tokio::test]
async fn a_sleeping_body_is_dropped() {
    for wire in Wire::both().await {
        let id = wire.create("sleep", json!({})).await;
        wire.noted("sleep started").await;
        wire.ask(&Request::cancel(&id)).await.is_ack();
        assert_eq!(wire.task(&id).await["status"], "cancelled");
        wire.noted("sleep dropped").await;
    }
}

/// Work on a blocking thread is not reached by a drop: its token fires.
#[tokio::test]
async fn the_token_fires_in_blocking_work() {
    for wire in Wire::both().await {
        let id = wire.create("block", json!({})).await;
        wire.noted("block started").await;
        wire.ask(&Request::cancel(&id)).await.is_ack();
        assert_eq!(wire.task(&id).await["status"], "cancelled");
        wire.noted("block saw the token").await;
        assert_eq!(
            wire.task(&id).await["status"],
            "cancelled",
            "what it came to does not count"
        );
    }
}

/// Tasks, "Task Cancellation" and "Task Status": a terminal task stays as it is, and is acknowledged all the same.
#[tokio::test]
async fn a_second_cancel_and_one_of_an_ended_task_are_acknowledged_and_change_nothing() {
    for wire in Wire::both().await {
        let sleeping = wire.create("sleep", json!({})).await;
        wire.ask(&Request::cancel(&sleeping)).await.is_ack();
        let completed = wire.create("unlimited", json!({})).await;
        wire.reaches(&completed, "completed").await;
        let failed = wire.create("fail_protocol", json!({})).await;
        wire.reaches(&failed, "failed").await;
        let writes = wire.seen().await.writes;
        for id in [&sleeping, &completed, &failed] {
            let before = wire.task(id).await;
            for _ in 0..2 {
                wire.ask(&Request::cancel(id)).await.is_ack();
                assert_eq!(&wire.task(id).await, &before);
            }
        }
        assert_eq!(wire.seen().await.writes, writes);
    }
}

/// Tasks, "Task Cancellation": `notifications/cancelled` is not for tasks, not even with the id of the call that created
/// one.
#[tokio::test]
async fn the_notification_with_the_id_of_the_call_does_nothing() {
    for wire in Wire::both().await {
        let call = Request::call("wait", json!({"gate": "g"})).id(json!("the-call"));
        let id = wire.create_by(call).await;
        wire.noted("wait started").await;
        for request in [json!("the-call"), json!(id)] {
            let params = json!({"requestId": request, "reason": "changed my mind"});
            wire.notify("notifications/cancelled", params).await;
        }
        assert_eq!(wire.task(&id).await["status"], "working");
        wire.open("g").await;
        assert_eq!(words(&wire.reaches(&id, "completed").await["result"]), "passed g");
    }
}

/// 2026-07-28, "Cancellation": on stdio the notification calls off a call that is under way.
#[tokio::test]
async fn the_notification_calls_off_a_synchronous_call_on_stdio() {
    let wire = Wire::stdio();
    let call = Request::call("sleep", json!({})).undeclared().id(json!("the-call"));
    let called_off = async {
        wire.noted("sleep started").await;
        let params = json!({"requestId": "the-call"});
        wire.notify("notifications/cancelled", params).await;
        wire.noted("sleep dropped").await;
    };
    tokio::select! {
        reply = wire.ask(&call) => panic!("a cancelled call has no response: {reply:?}"),
        () = called_off => {}
    }
}

/// 2026-07-28, "Streamable HTTP", "Cancellation": a client that goes away has called its request off.
#[tokio::test]
async fn a_client_that_goes_away_calls_off_its_synchronous_call() {
    let wire = Wire::http().await;
    let call = Request::call("sleep", json!({})).undeclared();
    tokio::select! {
        reply = wire.ask(&call) => panic!("{reply:?}"),
        () = wire.noted("sleep started") => {}
    }
    wire.noted("sleep dropped").await;
}

/// Tasks, "Task Creation": a task does not hang on the connection that created it.
#[tokio::test]
async fn a_client_that_goes_away_leaves_its_task_running() {
    let wire = Wire::http().await;
    let headers = wire.headers("tools/call", Some("wait"));
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "wait", "arguments": {"gate": "g"}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": crate::protocol::harness::V2026,
            "io.modelcontextprotocol/clientInfo": {"name": "gone", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": crate::protocol::harness::declared(),
        }},
    });
    let gone = reqwest::Client::new();
    let created = gone
        .post(wire.fixture.url())
        .headers(headers)
        .body(body.to_string())
        .send();
    let created: serde_json::Value = created.await.unwrap().json().await.unwrap();
    drop(gone);
    let id = created["result"]["taskId"].as_str().unwrap();
    wire.open("g").await;
    wire.reaches(id, "completed").await;
}
