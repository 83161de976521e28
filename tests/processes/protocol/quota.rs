//! Quotas.

use serde_json::{Value, json};

use crate::protocol::harness::{Reply, Request, Wire, until};

#[track_caller]
fn is_over(reply: &Reply, retry_after_ms: u64) {
    reply.refused(-31001, 200);
    assert_eq!(reply.error()["data"], json!({"retryAfterMs": retry_after_ms}));
}

/// Over the quota nothing is minted, and the client is told when to come again.
#[tokio::test]
async fn open_tasks_of_a_caller_are_limited_and_those_that_end_count_no_more() {
    for wire in Wire::both_with(&[("MCP_TASKS_QUOTA_OPEN_PER_PRINCIPAL", "2")]).await {
        let waiting = wire.create("ask", json!({})).await;
        let sleeping = wire.create("sleep", json!({})).await;
        wire.settled(&waiting).await;
        for tool in ["ask", "sleep"] {
            is_over(&wire.call(tool, json!({})).await, 2000);
        }
        assert_eq!(wire.seen().await.minted, 2);
        // What is no task is not limited, and what comes before the quota is still said first.
        let synchronous = Request::call("whoami", json!({})).undeclared();
        assert_eq!(wire.ask(&synchronous).await.words(), "nobody nobody false");
        assert_eq!(wire.call("optional", json!({})).await.result()["isError"], true);

        wire.ask(&Request::cancel(&sleeping)).await.is_ack();
        let ends = wire.create("unlimited", json!({})).await;
        wire.settled(&ends).await;
        let again = wire.create("sleep", json!({})).await;
        wire.ask(&Request::cancel(&again)).await.is_ack();
        wire.ask(&Request::update(&waiting, json!({"go": {"action": "decline"}})))
            .await
            .is_ack();
        wire.reaches(&waiting, "completed").await;
        assert_eq!(wire.call("sleep", json!({})).await.result()["resultType"], "task");
        assert_eq!(wire.call("sleep", json!({})).await.result()["resultType"], "task");
        is_over(&wire.call("sleep", json!({})).await, 2000);
    }
}

/// One caller's tasks are not another's; issuer and subject tell them apart, claims do not.
#[tokio::test]
async fn every_caller_has_a_quota_of_its_own() {
    let wire = Wire::http_with(&[("MCP_TASKS_QUOTA_OPEN_PER_PRINCIPAL", "1")]).await;
    let sleep = Request::call("sleep", json!({}));
    for user in [
        json!({"sub": "alice"}),
        json!({"sub": "bob"}),
        json!({"iss": "https://id.example", "sub": "alice"}),
    ] {
        wire.create_by(sleep.clone().user(&user)).await;
        is_over(&wire.ask(&sleep.clone().user(&user)).await, 2000);
        let mut refreshed: Value = user.clone();
        refreshed["claims"] = json!({"member": true});
        is_over(&wire.ask(&sleep.clone().user(&refreshed)).await, 2000);
    }
    wire.create("sleep", json!({})).await;
    is_over(&wire.call("sleep", json!({})).await, 2000);
}

/// Expired tasks count no more.
#[tokio::test]
async fn an_expired_task_counts_no_more() {
    let wire = Wire::http_with(&[("MCP_TASKS_QUOTA_OPEN_PER_PRINCIPAL", "1")]).await;
    let id = wire.create("ask", json!({})).await;
    wire.settled(&id).await;
    is_over(&wire.call("ask", json!({})).await, 2000);
    wire.advance(3_600_001).await;
    wire.create("ask", json!({})).await;
}

/// Executions of the server are limited together; a parked task needs none.
#[tokio::test]
async fn running_executions_are_limited_and_parked_tasks_are_none() {
    for wire in Wire::both_with(&[("MCP_TASKS_QUOTA_RUNNING", "1")]).await {
        let parked = wire.create("ask", json!({})).await;
        wire.settled(&parked).await;
        let running = until("the parked one has left", async || {
            let reply = wire.call("wait", json!({"gate": "g"})).await;
            Some(reply.message.get("result")?["taskId"].as_str()?.to_owned())
        })
        .await;
        is_over(&wire.call("ask", json!({})).await, 2000);
        assert_eq!(wire.seen().await.minted, 2);
        wire.open("g").await;
        wire.reaches(&running, "completed").await;
        until("the end has left", async || {
            let reply = wire.call("ask", json!({})).await;
            reply.message.get("result").map(|_| ())
        })
        .await;
    }
}
