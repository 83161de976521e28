//! Taking in the answers to the questions of a task, which resumes it.

use std::collections::BTreeMap;

use mcp_tasks_core::{Claim, Json, TaskId, TaskRecord, TaskStatus};
use rmcp::ErrorData;

use super::patience::REQUEST_PATIENCE;
use super::{TaskEngine, store_failed, unknown_task};
use crate::run::origin::RequestOrigin;

impl TaskEngine {
    /// Takes answers in, and starts the execution that goes on with them. The task was looked up with
    /// [`find`](Self::find) before, so that its owner and its tool's guard have been asked; the change itself is decided in
    /// the one write.
    ///
    /// # Errors
    /// [`unknown_task`] if the task went away meanwhile, a store that fails, a node that is stopping.
    pub(crate) async fn answer(
        &self,
        id: &TaskId,
        client: &RequestOrigin,
        responses: BTreeMap<String, Json>,
    ) -> Result<(), ErrorData> {
        // On a node that stops the task stays parked, and another node takes the answer.
        self.refuse_if_closing()?;
        let now = self.records.now();
        let capabilities = client.capabilities.clone();
        // Only the write that flipped the status starts an execution, however often the same answers come.
        let updated = if self.worker.is_enabled() {
            let mutation =
                move |record: &TaskRecord, claim: &Claim| record.answered(now, &responses, &capabilities, claim);
            self.worker.claim_and_start(id, None, mutation).await
        } else {
            let mutation = move |record: &TaskRecord| record.answered_unclaimed(now, &responses, &capabilities);
            self.records.write(id, REQUEST_PATIENCE, mutation).await
        };
        let updated = updated
            .map_err(|error| store_failed(&error))?
            .ok_or_else(unknown_task)?;
        if !updated.applied {
            let open: Vec<_> = updated.record.open.iter().map(|request| &*request.key).collect();
            tracing::info!(task_id = %id, ?open, "no answer was taken: none fits a question that is open");
        }
        if updated.applied && updated.record.status == TaskStatus::Working {
            tracing::info!(
                task_id = %id,
                tool = %updated.record.tool,
                execution = updated.record.execution.epoch,
                "task resumed"
            );
        }
        Ok(())
    }
}
