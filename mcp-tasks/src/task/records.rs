//! The records of tasks in the store: every read and write of this node.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use mcp_tasks_core::{Change, Claim, StoreError, TaskId, TaskRecord, TaskStore, Timestamp, Updated, WriteId};
use tokio::time::Instant;

use super::executions::Executions;
use super::patience::{REQUEST_PATIENCE, answered_by, patiently};
use super::watchers::Watchers;
use crate::run::clock::Clock;

/// How long a start waits for a store that cannot be reached: as long as a database takes that is started along with the
/// server, and short enough that a wrong address is soon told.
const START_PATIENCE: Duration = Duration::from_secs(10);

/// The store, with what this node needs to write to it: a clock, a name, and ids for its writes.
pub(crate) struct TaskRecords {
    store: Arc<dyn TaskStore>,
    clock: Arc<dyn Clock>,
    node: Arc<str>,
    lease: Duration,
    /// The random number of this node, to which each write adds one for its id.
    seed: u128,
    writes: AtomicU64,
    /// Both are told of what this node writes, and need not wait for the store to tell.
    executions: Arc<Executions>,
    watchers: Arc<Watchers>,
}

impl fmt::Debug for TaskRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskRecords")
            .field("node", &self.node)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl TaskRecords {
    /// The records in `store`. Claims of this node last for `lease`; `seed` is a random number that no other node has.
    pub(crate) fn new(
        store: Arc<dyn TaskStore>,
        clock: Arc<dyn Clock>,
        lease: Duration,
        seed: u128,
        executions: Arc<Executions>,
        watchers: Arc<Watchers>,
    ) -> Self {
        Self {
            store,
            clock,
            node: format!("{:016x}", seed >> 64).into(),
            lease,
            seed,
            writes: AtomicU64::new(0),
            executions,
            watchers,
        }
    }

    pub(crate) fn store(&self) -> &dyn TaskStore {
        &*self.store
    }

    pub(crate) const fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// How long a claim of this node lasts.
    pub(crate) const fn lease(&self) -> Duration {
        self.lease
    }

    /// A write id that no other write of any node has.
    pub(crate) fn write_id(&self) -> WriteId {
        let count = self.writes.fetch_add(1, Ordering::Relaxed);
        WriteId::new(self.seed.wrapping_add(u128::from(count)))
    }

    /// A claim of this node, from now on.
    pub(crate) fn claim(&self) -> Claim {
        Claim::new(self.node.clone(), self.now().saturating_add(self.lease))
    }

    /// Whether the store answers. The id is one that no task has.
    pub(crate) async fn check_store(&self) -> Result<(), StoreError> {
        let id = TaskId::new("start-up-check");
        patiently(START_PATIENCE, || self.store.get(&id, self.now())).await?;
        Ok(())
    }

    /// The record as it is now, for a request that waits for it.
    pub(crate) async fn read(&self, id: &TaskId) -> Result<Option<Arc<TaskRecord>>, StoreError> {
        patiently(REQUEST_PATIENCE, || self.store.get(id, self.now())).await
    }

    /// Stores a new record.
    pub(crate) async fn create(&self, record: &TaskRecord) -> Creation {
        // What one attempt leaves open, a refusal of the next does not settle.
        let is_open = AtomicBool::new(false);
        let attempt = || async {
            let created = self.store.create(record.clone()).await;
            if created.as_ref().is_err_and(StoreError::is_retryable) {
                is_open.store(true, Ordering::Relaxed);
            }
            created
        };
        let outcome = patiently(REQUEST_PATIENCE, attempt).await;
        let is_certain = match &outcome {
            // In the second case the task of this id is the one that is there.
            Ok(_) | Err(StoreError::AlreadyExists { .. }) => true,
            Err(error) => !error.is_retryable() && !is_open.load(Ordering::Relaxed),
        };
        Creation { outcome, is_certain }
    }

    /// One attempt to remove a record.
    pub(crate) async fn delete(&self, id: &TaskId) -> Result<(), StoreError> {
        answered_by(Instant::now() + REQUEST_PATIENCE, self.store.delete(id)).await
    }

    /// One update under a write id of its own.
    pub(crate) async fn write(
        &self,
        id: &TaskId,
        patience: Duration,
        mutation: impl Fn(&TaskRecord) -> Change + Send + Sync + 'static,
    ) -> Result<Option<Updated>, StoreError> {
        self.write_as(self.write_id(), id, patience, mutation).await
    }

    /// One update for an execution, tried again and again while the store cannot be reached, for as long as a lease lasts.
    pub(crate) async fn write_for_execution(
        &self,
        id: &TaskId,
        mutation: impl Fn(&TaskRecord) -> Change + Send + Sync + 'static,
    ) -> Result<Option<Updated>, StoreError> {
        self.write(id, self.lease, mutation).await
    }

    /// One update under this write id.
    pub(crate) async fn write_as(
        &self,
        write: WriteId,
        id: &TaskId,
        patience: Duration,
        mutation: impl Fn(&TaskRecord) -> Change + Send + Sync + 'static,
    ) -> Result<Option<Updated>, StoreError> {
        let mutation = Arc::new(mutation);
        let updated = patiently(patience, || {
            let mutation = mutation.clone();
            async move { self.store.update(id, self.now(), write, mutation).await }
        })
        .await;
        if let Ok(Some(updated)) = &updated
            && updated.applied
        {
            self.executions.record_written(&updated.record);
            self.watchers.changed(&updated.record.task_id);
        }
        updated
    }
}

/// What became of the creation of a record.
pub(crate) struct Creation {
    pub(crate) outcome: Result<Arc<TaskRecord>, StoreError>,
    /// Whether it is known if there is a record of this id now: a store that did not answer may have stored it.
    pub(crate) is_certain: bool,
}

#[cfg(test)]
mod tests;
