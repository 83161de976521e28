//! Looking a task up for its owner.

use std::sync::Arc;

use mcp_tasks_core::{Principal, StoreError, TaskId, TaskRecord, error_chain};
use rmcp::ErrorData;

use super::recovery::TakenOn;
use super::{TaskEngine, store_failed, unknown_task};

impl TaskEngine {
    /// The task, if it is there and `caller`'s. One whose node is gone is taken over first, so that no client is shown work
    /// that no node does.
    ///
    /// # Errors
    /// [`unknown_task`], or a store that fails.
    pub(crate) async fn get(&self, id: &TaskId, caller: Option<&Principal>) -> Result<Arc<TaskRecord>, ErrorData> {
        let found = self.find(id, caller).await;
        found.map_err(|error| store_failed(&error))?.ok_or_else(unknown_task)
    }

    /// As [`get`](Self::get), for callers that tell the ways in which the store fails apart.
    pub(crate) async fn find(
        &self,
        id: &TaskId,
        caller: Option<&Principal>,
    ) -> Result<Option<Arc<TaskRecord>>, StoreError> {
        self.start_background();
        let record = self.read_owned(id, caller).await?;
        let now = self.records.now();
        let abandoned = record.as_ref().filter(|record| self.leases.is_abandoned(record, now));
        let Some(abandoned) = abandoned else {
            return Ok(record);
        };
        // In a box of its own: every look-up would be given room for it.
        match Box::pin(self.recovery.recover(abandoned)).await {
            Ok(TakenOn::Settled) => self.read_owned(id, caller).await,
            // It is as it was.
            Ok(TakenOn::NotHere | TakenOn::Full) => Ok(record),
            Err(error) => {
                tracing::warn!(
                    task_id = %id,
                    error = %error_chain(&error),
                    "a task whose node is gone could not be taken over; it is left for the next look"
                );
                Ok(record)
            }
        }
    }

    async fn read_owned(&self, id: &TaskId, caller: Option<&Principal>) -> Result<Option<Arc<TaskRecord>>, StoreError> {
        let record = self.records.read(id).await?;
        record.iter().for_each(|record| self.admission.quota.refresh(record));
        Ok(record.filter(|record| Principal::is_owner(record.principal.as_deref(), caller)))
    }
}
