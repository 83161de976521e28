//! Two nodes on a store that tells of changes.

use std::sync::Arc;
use std::time::Duration;

use mcp_tasks::prelude::*;
use mcp_tasks_core::MemoryStore;
use serde_json::json;

use crate::harness::{Client, Log, status};

struct Left(Log);

impl Drop for Left {
    fn drop(&mut self) {
        self.0.push("dropped");
    }
}

/// Works for an hour.
#[mcp_task(ttl = "PT2H")]
async fn toil(ctx: ToolContext, log: State<Log>) -> String {
    let log = Log::clone(&log);
    let _left = Left(log.clone());
    let (token, told) = (ctx.cancellation().clone(), log.clone());
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
    let (store, log) = (Arc::new(MemoryStore::new()), Log::default());
    let node = || {
        // With a renewal once in an hour, nothing but the news of the change can stop it in time.
        let config = mcp_tasks::Config::builder()
            .set("mcp.tasks.lease", "PT3H")
            .build()
            .unwrap();
        let builder = TaskRuntime::builder()
            .without_inventory()
            .register::<toil>()
            .config(config);
        builder.state(log.clone()).store(store.clone()).build().unwrap()
    };
    let (near, far) = (node(), node());
    let (near, far) = (
        Client::connect(near.handler()).await,
        Client::connect(far.handler()).await,
    );
    let id = near.call("toil", json!({})).await.unwrap()["taskId"]
        .as_str()
        .unwrap()
        .to_owned();
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
