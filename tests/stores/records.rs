//! Records for the tests, and changes to them.

use std::sync::Arc;
use std::time::Duration;

use mcp_tasks_core::{Change, ClientCapabilities, Json, Mutation, TaskId, TaskRecord, Timestamp, WriteId};

pub(crate) fn json(text: &str) -> Json {
    serde_json::from_str(text).expect("the test's JSON is JSON")
}

pub(crate) fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000 + millis)
}

pub(crate) fn record(id: &str, ttl_ms: Option<u64>) -> TaskRecord {
    let mut record = TaskRecord::new(
        TaskId::new(id),
        "encode".into(),
        json(r#"{"uri":"file:///a"}"#),
        ClientCapabilities::new(json("{}")),
        at(0),
        ttl_ms.map(Duration::from_millis),
        Duration::from_secs(2),
    );
    record.last_write = Some(WriteId::new(1));
    record
}

/// Counts the updates in the poll interval, which begins at 2,000.
pub(crate) fn increment() -> Mutation {
    Arc::new(|record| {
        let mut next = record.clone();
        next.poll_interval_ms += 1;
        Change::Write(Box::new(next))
    })
}
