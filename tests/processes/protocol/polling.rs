//! Polls, as tight as clients make them.

use serde_json::json;

use crate::protocol::harness::{Request, Wire, until};

/// Tasks, "Task Polling" and "Task Status": a poll shows one state of the record, never parts of two.
#[tokio::test]
async fn no_poll_sees_half_of_a_completion() {
    for wire in Wire::both().await {
        for round in 0..5 {
            let gate = format!("end-{round}");
            let id = wire.create("report_and_end", json!({"gate": gate})).await;
            until("it is at work", async || {
                (wire.task(&id).await["statusMessage"] == "1/2: at work").then_some(())
            })
            .await;
            let (end, ()) = tokio::join!(
                until("the end", async || {
                    let task = wire.task(&id).await;
                    let ended = task["status"] == "completed";
                    assert_eq!(task.get("result").is_some(), ended, "{task}");
                    assert_eq!(task["statusMessage"] == "2/2: done", ended, "{task}");
                    ended.then_some(task)
                }),
                wire.open(&gate),
            );
            assert_eq!(end["result"]["content"][0]["text"], "the end");
        }
    }
}

/// Tasks, "Task Polling": servers may limit pollers; this one serves those that do not keep to the interval.
#[tokio::test]
async fn a_poll_far_tighter_than_the_interval_is_served() {
    for wire in Wire::both().await {
        let id = wire.create("sleep", json!({})).await;
        let first = wire.task(&id).await;
        assert_eq!(first["pollIntervalMs"], 2000);
        let writes = wire.seen().await.writes;
        for _ in 0..300 {
            let reply = wire.ask(&Request::get(&id)).await;
            reply.has_status(200);
            assert_eq!(
                reply.result(),
                &first,
                "`lastUpdatedAt` moves only with what a client can see"
            );
        }
        assert_eq!(wire.seen().await.writes, writes, "a poll writes nothing");
    }
}

/// Tools are listed before each call by some clients: a listing is the same every time.
#[tokio::test]
async fn listings_are_stable() {
    for wire in Wire::both().await {
        let list = Request::new("tools/list", json!({})).id(json!(7));
        let first = wire.ask(&list).await;
        for _ in 0..20 {
            assert_eq!(wire.ask(&list).await.text, first.text);
        }
        assert_eq!(wire.ask(&list.undeclared()).await.text, first.text);
    }
}

/// 2026-07-28, "Streamable HTTP", "Sending Messages": a poll is one small JSON answer, not a stream of events.
#[tokio::test]
async fn a_poll_is_answered_as_json() {
    let wire = Wire::http().await;
    let id = wire.create("unlimited", json!({})).await;
    wire.settled(&id).await;
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tasks/get",
        "params": {"taskId": id, "_meta": {
            "io.modelcontextprotocol/protocolVersion": crate::protocol::harness::V2026,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": crate::protocol::harness::declared(),
        }},
    });
    let (reply, headers) = wire.post(wire.headers("tasks/get", Some(&id)), body.to_string()).await;
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(reply.result()["status"], "completed");
}
