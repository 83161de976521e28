//! Taking on tasks that work and that nobody runs, though no node died.

use std::sync::atomic::{AtomicU64, Ordering};

use mcp_tasks_core::{StoreError, TaskRecord};

use super::write::REQUEST_PATIENCE;
use super::{Engine, lock};

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

/// A place among those that this node may run at a time, for an execution that is about to start.
#[derive(Debug)]
pub(super) struct Place<'a> {
    claiming: &'a AtomicU64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.claiming.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Engine {
    /// A place for one more execution, if there is one.
    fn place(&self) -> Option<Place<'_>> {
        let claiming = &self.inner.claiming;
        let running = lock(&self.inner.running);
        if let Some(limit) = self.inner.settings.quota_running
            && (running.len() as u64).saturating_add(claiming.load(Ordering::Relaxed)) >= limit
        {
            return None;
        }
        claiming.fetch_add(1, Ordering::Relaxed);
        drop(running);
        Some(Place { claiming })
    }

    /// Claims a task that is idle and whose time has come, and runs it. Of several nodes that come by at the same time one
    /// does so.
    pub(super) async fn take_on(&self, record: &TaskRecord) -> Result<TakenOn, StoreError> {
        if self.inner.closing.is_cancelled() || self.inner.registry.get(&record.tool).is_none() {
            return Ok(TakenOn::NotHere);
        }
        let Some(_place) = self.place() else {
            return Ok(TakenOn::Full);
        };
        let (now, claim) = (self.now(), self.claim());
        let claimed = self.write(&record.task_id, REQUEST_PATIENCE, move |r| r.claimed(now, &claim));
        let updated = claimed.await?;
        if let Some(updated) = updated.filter(|updated| updated.applied) {
            tracing::info!(
                task_id = %record.task_id,
                tool = %record.tool,
                execution = updated.record.execution.epoch,
                was = ?record.execution.idle,
                "task taken on"
            );
            self.spawn_execution(updated.record, None);
        }
        Ok(TakenOn::Settled)
    }
}
