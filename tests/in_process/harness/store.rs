//! The memory store behind a faulty way to it, and what disturbs the executions that write to it.

use std::sync::{Arc, Mutex};

use mcp_tasks::host::Clock;
use mcp_tasks_core::{
    Change, Fingerprint, InputKind, InputRequest, Json, Ledger, MemoryStore, Mutation, StoreFuture, TaskId, TaskRecord,
    TaskStatus, TaskStore, Timestamp, Updated, WriteId,
};
use mcp_tasks_tests::faults::{Faults, FaultyStore, Weather};
use serde_json::json;

use super::{Mode, TestClock};

/// The key of the question that ends a disturbed execution.
pub(crate) const REPLAY: &str = "replay";

/// Beyond what any body reaches.
const REPLAY_ORDINAL: u32 = u32::MAX;

/// The memory store, with what disturbs executions and keeps an account of what is written.
#[derive(Debug)]
struct Disturbing {
    inner: MemoryStore,
    mode: Mode,
    written: Mutex<Vec<Arc<TaskRecord>>>,
}

impl TaskStore for Disturbing {
    fn update<'a>(
        &'a self,
        id: &'a TaskId,
        now: Timestamp,
        write: WriteId,
        mutation: Mutation,
    ) -> StoreFuture<'a, Option<Updated>> {
        let mode = self.mode;
        let mutation: Mutation = Arc::new(move |record| disturbed(mode, record, mutation(record)));
        Box::pin(async move {
            let updated = self.inner.update(id, now, write, mutation).await?;
            if let Some(updated) = updated.as_ref().filter(|updated| updated.applied) {
                let mut written = self.written.lock().expect("no test panics inside");
                // A repeated write is shown what it wrote before.
                let of_this_task = written.iter().rev().find(|record| record.task_id == *id);
                if of_this_task.is_none_or(|last| !Arc::ptr_eq(last, &updated.record)) {
                    written.push(updated.record.clone());
                }
            }
            Ok(updated)
        })
    }

    mcp_tasks_core::delegate_task_store! { inner => create, get, delete, as_sweep, as_change_feed }
}

#[derive(Debug)]
pub(crate) struct TestStore {
    faulty: FaultyStore<Disturbing>,
    clock: Arc<TestClock>,
}

impl TestStore {
    pub(crate) fn new(mode: Mode) -> Self {
        Self {
            faulty: FaultyStore::new(Disturbing {
                inner: MemoryStore::new(),
                mode,
                written: Mutex::default(),
            }),
            clock: Arc::new(TestClock::new()),
        }
    }

    pub(crate) fn clock(&self) -> Arc<TestClock> {
        self.clock.clone()
    }

    pub(crate) fn misbehave(&self, change: impl FnOnce(&mut Faults)) {
        self.faulty.misbehave(change);
    }

    /// What a storm has done so far.
    pub(crate) fn weather(&self) -> Weather {
        self.faulty.weather()
    }

    /// Every version of every task that updates wrote, in their order.
    pub(crate) fn written(&self) -> Vec<Arc<TaskRecord>> {
        let written = &self.faulty.inner().written;
        written.lock().expect("no test panics inside").clone()
    }

    /// Whether no record is there.
    pub(crate) fn is_empty(&self) -> bool {
        self.faulty.inner().inner.is_empty()
    }

    /// The record as it is.
    pub(crate) async fn record(&self, id: &str) -> Arc<TaskRecord> {
        self.faulty
            .inner()
            .get(&TaskId::new(id), self.clock.now())
            .await
            .expect("memory does not fail")
            .expect("the task is there")
    }
}

impl TaskStore for TestStore {
    mcp_tasks_core::delegate_task_store! { faulty => all }
}

/// What is stored instead of `change` where executions are disturbed. A write of a running execution parks the task under
/// a question of the test's own, so that the execution finds itself fenced; the answer to that question is taken out of
/// the ledger again before the next execution sees it. What remains is what a crash after the write would leave.
fn disturbed(mode: Mode, record: &TaskRecord, change: Change) -> Change {
    let Change::Write(mut next) = change else {
        return change;
    };
    match (record.status, next.status) {
        (TaskStatus::Working, TaskStatus::Working)
            if (mode != Mode::Straight && next.ledger != record.ledger)
                || (mode == Mode::Hostile && next.progress != record.progress) =>
        {
            next.status = TaskStatus::InputRequired;
            next.open = vec![question()];
            next.execution.node = None;
            next.execution.lease_until = None;
            next.execution.idle = None;
        }
        (TaskStatus::InputRequired, TaskStatus::Working) => {
            let entries = next.ledger.entries().iter();
            next.ledger = Ledger::new(
                entries
                    .filter(|entry| entry.ordinal != REPLAY_ORDINAL)
                    .cloned()
                    .collect(),
            );
        }
        _ => {}
    }
    Change::Write(next)
}

fn question() -> InputRequest {
    let request = json!({
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": "Go on?",
            "requestedSchema": {"type": "object", "properties": {}},
        },
    });
    InputRequest::new(
        REPLAY_ORDINAL,
        REPLAY.into(),
        InputKind::Form,
        Fingerprint::of("elicit", REPLAY, None),
        Json::of(&request).expect("it is JSON"),
    )
}
