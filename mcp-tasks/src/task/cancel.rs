//! Cancelling a task.

use mcp_tasks_core::TaskId;
use rmcp::ErrorData;

use super::patience::REQUEST_PATIENCE;
use super::{TaskEngine, store_failed, unknown_task};

impl TaskEngine {
    /// Cancels the task, wherever it is in its life.
    ///
    /// # Errors
    /// [`unknown_task`] if the task went away meanwhile, or a store that fails.
    pub(crate) async fn cancel(&self, id: &TaskId) -> Result<(), ErrorData> {
        let now = self.records.now();
        let updated = self
            .records
            .write(id, REQUEST_PATIENCE, move |record| record.cancelled(now))
            .await
            .map_err(|error| store_failed(&error))?
            .ok_or_else(unknown_task)?;
        if updated.applied {
            self.admission.task_ended(&updated.record, now);
            self.executions.cancel(id);
        }
        Ok(())
    }
}
