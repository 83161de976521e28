//! `tasks/get` (Tasks extension, "Task Polling").

use std::sync::Arc;

use mcp_tasks_core::{TaskId, TaskRecord};

use super::{Operations, TaskRefusal, find, run_to_end};
use crate::host::extension::TasksExtension;
use crate::tool::caller::Caller;

/// A request to show a task.
#[derive(Debug)]
pub(crate) struct GetTask {
    pub(crate) id: TaskId,
    pub(crate) caller: Caller,
    pub(crate) extension: TasksExtension,
}

impl Operations {
    /// The task as it is now. One whose node is gone is taken over first.
    ///
    /// # Errors
    /// `-32021` without the extension; a task that is not the caller's; a store that fails.
    pub(crate) async fn get(&self, request: GetTask) -> Result<Arc<TaskRecord>, TaskRefusal> {
        request.extension.require()?;
        let engine = self.engine.clone();
        run_to_end(async move { find(&engine, &request.id, &request.caller).await }).await
    }
}
