//! Two nodes on a store that tells of changes.

use std::time::Duration;

use mcp_tasks::prelude::*;
use serde_json::json;

use crate::harness::{Log, Mode, Node, TestStore, config, status};

/// Works for an hour.
#[mcp_task(ttl = "PT2H")]
async fn toil(ctx: ToolContext, log: State<Log>) -> String {
    let _left = log.on_drop("dropped");
    let (token, told) = (ctx.cancellation().clone(), Log::clone(&log));
    tokio::spawn(async move {
        token.cancelled().await;
        told.push("token");
    });
    log.push("started");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    "done".to_owned()
}

/// "Cancel": a cancellation on one node stops the work on another at once, and does not wait for the lease to be renewed.
#[tokio::test]
async fn a_cancellation_on_another_node_stops_the_work_at_once() {
    let (store, log) = (TestStore::new(Mode::Straight), Log::default());
    // With a renewal once in an hour, nothing but the news of the change can stop it in time.
    let node = || {
        Node::on(&store, |b| {
            b.config(config(&[("mcp.tasks.lease", "PT3H")]))
                .register::<toil>()
                .state(log.clone())
        })
    };
    let (near, far) = (node().client().await, node().client().await);
    let id = near.start("toil", json!({})).await;
    until(&log, "started").await;
    far.cancel(&id).await.unwrap();
    until(&log, "dropped").await;
    until(&log, "token").await;
    assert_eq!(status(&near.get(&id).await.unwrap()), "cancelled");
}

async fn until(log: &Log, line: &str) {
    let limit = tokio::time::Instant::now() + Duration::from_secs(30);
    while log.count(line) == 0 {
        assert!(tokio::time::Instant::now() < limit, "never happened: {line}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
