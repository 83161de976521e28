//! `tasks/cancel` (Tasks extension, "Task Cancellation").

use mcp_tasks_core::TaskId;

use super::{Operations, TaskRefusal, find, run_to_end};
use crate::host::extension::TasksExtension;
use crate::tool::caller::Caller;

/// A request to end a task.
#[derive(Debug)]
pub(crate) struct CancelTask {
    pub(crate) id: TaskId,
    pub(crate) caller: Caller,
    pub(crate) extension: TasksExtension,
}

impl Operations {
    /// Cancels the task, wherever it is in its life; one that has ended stays as it is.
    ///
    /// # Errors
    /// `-32021` without the extension; a task that is not the caller's; a store that fails.
    pub(crate) async fn cancel(&self, request: CancelTask) -> Result<(), TaskRefusal> {
        request.extension.require()?;
        let engine = self.engine.clone();
        run_to_end(async move {
            find(&engine, &request.id, &request.caller).await?;
            Ok(engine.cancel(&request.id).await?)
        })
        .await
    }
}
