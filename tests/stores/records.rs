//! Records for the tests, and changes to them.

use std::sync::Arc;
use std::time::Duration;

use mcp_tasks_core::{
    Change, ClientCapabilities, Json, Mutation, RecordError, StoreError, TaskId, TaskRecord, TaskStore, Timestamp,
    WriteId,
};

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

/// Creates `t000` to `t199`, each with a lease until the millisecond of its number, every other one without a deadline, and
/// `without`, which has no lease. Then the lease of `t001` is renewed for long, and `t003` ends.
pub(crate) async fn create_two_hundred_leases(store: &dyn TaskStore) {
    for n in 0..200_u64 {
        let mut task = record(&format!("t{n:03}"), (n % 2 == 0).then_some(1_000));
        task.execution.lease_until = Some(at(n));
        store.create(task).await.unwrap();
    }
    store.create(record("without", None)).await.unwrap();
    let renew: Mutation = Arc::new(|task| {
        let mut next = task.clone();
        next.execution.lease_until = Some(at(10_000));
        Change::Write(Box::new(next))
    });
    let end: Mutation = Arc::new(|task| task.cancelled(at(1)));
    for (id, change) in [("t001", renew), ("t003", end)] {
        let updated = store.update(&TaskId::new(id), at(1), WriteId::new(2), change).await;
        assert!(updated.unwrap().unwrap().applied);
    }
}

/// A record that cannot be read is refused by every operation but `delete`, and the refusal names it; `t005` is of a later
/// format.
pub(crate) async fn every_use_is_refused(store: &dyn TaskStore, id: &str, now: Timestamp) {
    let task = TaskId::new(id);
    let outcomes = [
        store.get(&task, now).await.map(drop),
        store.update(&task, now, WriteId::new(2), increment()).await.map(drop),
        store.create(record(id, None)).await.map(drop),
    ];
    for outcome in outcomes {
        let error = outcome.unwrap_err();
        let StoreError::Unreadable { id: named, source } = error else {
            panic!("{id}: {error}");
        };
        assert_eq!(named, task);
        let is_newer = matches!(source, RecordError::NewerFormat { found: 99, .. });
        assert_eq!(is_newer, id == "t005", "{source}");
    }
}
