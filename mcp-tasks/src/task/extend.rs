//! Extending the time to live of a running task.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use mcp_tasks_core::duration::MAX_DURATION;
use mcp_tasks_core::{Change, TaskId, TaskRecord};

use super::admission::Admission;
use super::records::TaskRecords;
use super::store_failed;
use crate::run::Carrier;
use crate::tool::error::ToolError;

/// The carrier of the run of a task's execution.
#[derive(Debug)]
pub(crate) struct InTask {
    pub(crate) records: Arc<TaskRecords>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) id: TaskId,
    pub(crate) epoch: u64,
}

impl Carrier for InTask {
    fn is_task(&self) -> bool {
        true
    }

    fn extend_ttl(&self, ttl: Duration) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(self.extend(ttl))
    }
}

impl InTask {
    /// Lets the task live for at least `ttl` from now.
    async fn extend(&self, ttl: Duration) -> Result<(), ToolError> {
        let (now, epoch) = (self.records.now(), self.epoch);
        let mutation = move |record: &TaskRecord| {
            let Some(old) = record.ttl_ms else {
                return Change::Keep;
            };
            let elapsed = now.saturating_since(record.created_at);
            let extended = elapsed.saturating_add(ttl).min(MAX_DURATION);
            record.extended(epoch, now, Some(extended.max(Duration::from_millis(old))))
        };
        let updated = self
            .records
            .write_for_execution(&self.id, mutation)
            .await
            .map_err(|error| ToolError::protocol(store_failed(&error)))?;
        match updated {
            Some(updated) if updated.record.is_owned_by(epoch) => {
                self.admission.quota.refresh(&updated.record);
                Ok(())
            }
            _ => Err(ToolError::new("the task is no longer this run's")),
        }
    }
}
