//! The memory store, and what a store may do to its caller.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_tasks::Clock;
use mcp_tasks_core::{
    Change, Fingerprint, InputKind, InputRequest, Json, Ledger, MemoryStore, Mutation, StoreError, StoreFuture, Sweep,
    TaskId, TaskRecord, TaskStatus, TaskStore, Timestamp, Updated, WriteId,
};
use serde_json::json;

use super::{Dice, Mode, TestClock};

/// The key of the question that ends a disturbed execution.
pub(crate) const REPLAY: &str = "replay";

/// Beyond what any body reaches.
const REPLAY_ORDINAL: u32 = u32::MAX;

/// What the store does besides storing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    /// How often a mutation runs before the outcome of its last run is used.
    pub(crate) reruns: u32,
    /// How long an update takes to arrive.
    pub(crate) before: Duration,
    /// How long its acknowledgement takes.
    pub(crate) after: Duration,
    /// A random time up to this much more, before and after.
    pub(crate) jitter: Option<(Dice, Duration)>,
    /// How many of the next updates do not arrive.
    pub(crate) fail: u32,
    /// The acknowledgements of how many of the next updates are lost.
    pub(crate) lose: u32,
    /// The acknowledgements of how many of the next creations are lost.
    pub(crate) lose_creates: u32,
    /// Nothing works.
    pub(crate) down: bool,
}

#[derive(Debug)]
pub(crate) struct TestStore {
    inner: MemoryStore,
    clock: Arc<TestClock>,
    mode: Mode,
    faults: Mutex<Faults>,
    written: Mutex<Vec<Arc<TaskRecord>>>,
}

impl TestStore {
    pub(crate) fn new(mode: Mode) -> Self {
        Self {
            inner: MemoryStore::new(),
            clock: Arc::new(TestClock::new()),
            mode,
            faults: Mutex::default(),
            written: Mutex::default(),
        }
    }

    pub(crate) fn clock(&self) -> Arc<TestClock> {
        self.clock.clone()
    }

    pub(crate) fn misbehave(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut self.faults.lock().expect("no test panics inside"));
    }

    /// Every version of every task that updates wrote, in their order.
    pub(crate) fn written(&self) -> Vec<Arc<TaskRecord>> {
        self.written.lock().expect("no test panics inside").clone()
    }

    /// The record as it is.
    pub(crate) async fn record(&self, id: &str) -> Arc<TaskRecord> {
        self.inner
            .get(&TaskId::new(id), self.clock.now())
            .await
            .expect("memory does not fail")
            .expect("the task is there")
    }

    fn take_faults(&self) -> Faults {
        let mut faults = self.faults.lock().expect("no test panics inside");
        let mut taken = faults.clone();
        faults.fail = faults.fail.saturating_sub(1);
        if taken.fail == 0 {
            faults.lose = faults.lose.saturating_sub(1);
        }
        if let Some((dice, most)) = &mut faults.jitter {
            let most = u64::try_from(most.as_millis()).unwrap_or(u64::MAX) + 1;
            taken.before += Duration::from_millis(dice.below(most));
            taken.after += Duration::from_millis(dice.below(most));
        }
        taken
    }

    fn is_up(&self) -> Result<(), StoreError> {
        if self.faults.lock().expect("no test panics inside").down {
            return Err(unavailable("it is down"));
        }
        Ok(())
    }

    async fn updated(
        &self,
        id: &TaskId,
        now: Timestamp,
        write: WriteId,
        mutation: Mutation,
    ) -> Result<Option<Updated>, StoreError> {
        let faults = self.take_faults();
        pause(faults.before).await;
        self.is_up()?;
        if faults.fail > 0 {
            return Err(unavailable("the update did not arrive"));
        }
        let mode = self.mode;
        let mutation: Mutation = Arc::new(move |record| {
            let first = mutation(record);
            for _ in 1..faults.reruns {
                assert_eq!(mutation(record), first, "a mutation is a function of the record");
            }
            disturbed(mode, record, first)
        });
        let updated = self.inner.update(id, now, write, mutation).await?;
        if let Some(updated) = updated.as_ref().filter(|updated| updated.applied) {
            let mut written = self.written.lock().expect("no test panics inside");
            if written.last().is_none_or(|last| !Arc::ptr_eq(last, &updated.record)) {
                written.push(updated.record.clone());
            }
        }
        pause(faults.after).await;
        if faults.lose > 0 {
            return Err(unavailable("the acknowledgement was lost"));
        }
        Ok(updated)
    }
}

async fn pause(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}

fn unavailable(reason: &str) -> StoreError {
    StoreError::Unavailable {
        reason: reason.to_owned(),
        source: None,
    }
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

impl TaskStore for TestStore {
    fn create(&self, record: TaskRecord) -> StoreFuture<'_, Arc<TaskRecord>> {
        Box::pin(async move {
            self.is_up()?;
            let created = self.inner.create(record).await?;
            let mut faults = self.faults.lock().expect("no test panics inside");
            if faults.lose_creates > 0 {
                faults.lose_creates -= 1;
                return Err(unavailable("the acknowledgement was lost"));
            }
            Ok(created)
        })
    }

    fn get<'a>(&'a self, id: &'a TaskId, now: Timestamp) -> StoreFuture<'a, Option<Arc<TaskRecord>>> {
        Box::pin(async move {
            self.is_up()?;
            self.inner.get(id, now).await
        })
    }

    fn update<'a>(
        &'a self,
        id: &'a TaskId,
        now: Timestamp,
        write: WriteId,
        mutation: Mutation,
    ) -> StoreFuture<'a, Option<Updated>> {
        Box::pin(self.updated(id, now, write, mutation))
    }

    fn delete<'a>(&'a self, id: &'a TaskId) -> StoreFuture<'a, ()> {
        self.inner.delete(id)
    }

    fn as_sweep(&self) -> Option<&dyn Sweep> {
        self.inner.as_sweep()
    }
}
