//! `tasks/update` (Tasks extension, "Task Update Requests").

use std::collections::BTreeMap;

use mcp_tasks_core::{Json, TaskId};

use super::{Operations, TaskRefusal, ask_guard, find, run_to_end};
use crate::host::extension::TasksExtension;
use crate::run::origin::RequestOrigin;

/// Answers to the questions of a task.
#[derive(Debug)]
pub(crate) struct UpdateTask {
    pub(crate) id: TaskId,
    pub(crate) client: RequestOrigin,
    pub(crate) extension: TasksExtension,
    /// By the keys of the questions.
    pub(crate) responses: BTreeMap<String, Json>,
}

impl Operations {
    /// Takes the answers in, in one read and one write: the read finds the record for its owner and its tool's guard, and
    /// everything else is decided in the write.
    ///
    /// # Errors
    /// `-32021` without the extension; a task that is not the caller's; `-32010` from the guard; a store that fails; a
    /// node that is stopping.
    pub(crate) async fn update(&self, request: UpdateTask) -> Result<(), TaskRefusal> {
        request.extension.require()?;
        let engine = self.engine.clone();
        run_to_end(async move {
            let client = &request.client;
            let record = find(&engine, &request.id, &client.caller).await?;
            if let Some(tool) = engine.registry().get(&record.tool) {
                ask_guard(tool.guard, &client.caller).await?;
            }
            Ok(engine.answer(&record.task_id, client, request.responses).await?)
        })
        .await
    }
}
