//! Taking on tasks that work and that nobody runs, though no node died.

use mcp_tasks_core::{StoreError, TaskRecord};

use super::Engine;

/// What became of a task that could be taken on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TakenOn {
    /// Somebody runs it, this node or another that was quicker, or it has ended.
    Settled,
    /// It is for another node: this one does not have its tool, or starts nothing any more.
    NotHere,
    /// This node runs as many executions as it may.
    Full,
}

impl Engine {
    /// Claims a task that is idle and whose time has come, and runs it. Of several nodes that come by at the same time one
    /// does so.
    pub(super) async fn take_on(&self, record: &TaskRecord) -> Result<TakenOn, StoreError> {
        if self.inner.closing.is_cancelled() || self.inner.registry.get(&record.tool).is_none() {
            return Ok(TakenOn::NotHere);
        }
        let Some(place) = self.inner.places.try_take() else {
            return Ok(TakenOn::Full);
        };
        let now = self.now();
        let claimed = self.write_start(&record.task_id, Some(place), self.claim(), move |r, claim| {
            r.claimed(now, claim)
        });
        if let Some(updated) = claimed.await?.filter(|updated| updated.applied) {
            tracing::info!(
                task_id = %record.task_id,
                tool = %record.tool,
                execution = updated.record.execution.epoch,
                was = ?record.execution.idle,
                "task taken on"
            );
        }
        Ok(TakenOn::Settled)
    }
}
