//! Reads and writes of a store that may be out of reach for a while, or never answer.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use mcp_tasks_core::{Change, StoreError, TaskId, TaskRecord, Updated, WriteId, error_chain};

use super::{Engine, lock};

/// How long a request waits for a store that cannot be reached or does not answer: long enough for a lost acknowledgement or
/// a restart of the store's connection, and shorter than clients wait for an answer.
pub(crate) const REQUEST_PATIENCE: Duration = Duration::from_secs(2);

/// How long a start waits for a store that cannot be reached: as long as a database takes that is started along with the
/// server, and short enough that a wrong address is soon told.
const START_PATIENCE: Duration = Duration::from_secs(10);

/// Calls `operation` again and again while the store cannot be reached, for as long as `patience` lasts. A write must name
/// the same write id each time: a write whose acknowledgement was lost is then found, and not applied twice.
pub(crate) async fn patiently<T, F>(patience: Duration, mut operation: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    // Long enough not to hammer a store that restarts, short enough that a blip is not noticed.
    const FIRST_DELAY: Duration = Duration::from_millis(20);
    const LONGEST_DELAY: Duration = Duration::from_secs(2);

    let policy = ExponentialBuilder::default()
        .with_min_delay(FIRST_DELAY)
        .with_max_delay(LONGEST_DELAY)
        .with_jitter()
        .without_max_times()
        .with_total_delay(Some(patience));
    let deadline = tokio::time::Instant::now() + patience;
    // A call that never comes back must not outlast the patience either: another node may have taken over by then.
    let bounded = || {
        let operation = operation();
        async move {
            tokio::time::timeout_at(deadline, operation).await.unwrap_or_else(|_| {
                let reason = "it did not answer in time".to_owned();
                Err(StoreError::Unavailable { reason, source: None })
            })
        }
    };
    bounded
        .retry(policy)
        // An attempt that waited the patience out is the last: another would be sent and given up at once.
        .when(|error| error.is_retryable() && tokio::time::Instant::now() < deadline)
        .notify(|error, delay| {
            tracing::warn!(error = %error_chain(error), ?delay, "the task store cannot be reached; trying again");
        })
        .await
}

impl Engine {
    /// Whether the store answers. The id is one that no task has.
    pub(crate) async fn check_store(&self) -> Result<(), StoreError> {
        let id = TaskId::new("start-up-check");
        patiently(START_PATIENCE, || self.inner.store.get(&id, self.now())).await?;
        Ok(())
    }

    /// The record as it is now, for whoever waits for an answer.
    pub(crate) async fn read(&self, id: &TaskId) -> Result<Option<Arc<TaskRecord>>, StoreError> {
        patiently(REQUEST_PATIENCE, || self.inner.store.get(id, self.now())).await
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
            async move { self.inner.store.update(id, self.now(), write, mutation).await }
        })
        .await;
        if let Ok(Some(updated)) = &updated
            && updated.applied
        {
            self.wrote(&updated.record);
        }
        updated
    }

    /// Tells this node's listeners, who need not wait for the store to tell of it.
    fn wrote(&self, record: &TaskRecord) {
        if let Some(running) = lock(&self.inner.running).get_mut(&record.task_id) {
            running.written = running.written.max(record.version);
        }
        self.inner.watchers.touch(&record.task_id);
    }
}
