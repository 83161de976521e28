//! `tasks/get`, `tasks/update` and `tasks/cancel` (Tasks extension, SEP-2663).

use std::collections::BTreeMap;

use mcp_tasks_core::{Json, TaskId, TaskRecord};
use rmcp::model::{CancelTaskParams, ErrorCode, GetTaskParams, GetTaskResult, UpdateTaskParams};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::declared::{ask_guard, require_extension};
use super::{TaskServer, wire};
use crate::run::origin::RequestOrigin;
use crate::task::Engine;

/// Takes in answers for a task that was looked up for their giver. The guard of the task's tool is asked first.
///
/// # Errors
/// The guard's, and those of the engine.
pub(crate) async fn take_answers(
    engine: &Engine,
    record: &TaskRecord,
    client: &RequestOrigin,
    responses: BTreeMap<String, Json>,
) -> Result<(), ErrorData> {
    if let Some(tool) = engine.registry().get(&record.tool) {
        ask_guard(tool.guard, &client.caller).await?;
    }
    engine.answer(&record.task_id, client, responses).await
}

impl<H: ServerHandler> TaskServer<H> {
    /// Whether a task we do not know may be one of the wrapped handler's.
    fn may_be_inner(&self, error: &ErrorData) -> bool {
        error.code == ErrorCode::INVALID_PARAMS && self.inner.get_info().capabilities.supports_tasks()
    }

    pub(super) async fn task_get(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        require_extension(&context)?;
        let id = TaskId::new(&request.task_id);
        let caller = self.caller(&context);
        match self.runtime.engine.get(&id, caller.principal()).await {
            Ok(record) => wire::detailed(&record),
            Err(error) if self.may_be_inner(&error) => self.inner.get_task(request, context).await,
            Err(error) => Err(error),
        }
    }

    pub(super) async fn task_update(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        require_extension(&context)?;
        let engine = &self.runtime.engine;
        let id = TaskId::new(&request.task_id);
        let client = self.client(&context);
        let record = match engine.get(&id, client.caller.principal()).await {
            Ok(record) => record,
            Err(error) if self.may_be_inner(&error) => {
                return self.inner.update_task(request, context).await;
            }
            Err(error) => return Err(error),
        };
        take_answers(engine, &record, &client, wire::responses(request.input_responses)).await
    }

    pub(super) async fn task_cancel(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        require_extension(&context)?;
        let engine = &self.runtime.engine;
        let id = TaskId::new(&request.task_id);
        let caller = self.caller(&context);
        match engine.get(&id, caller.principal()).await {
            Ok(_) => engine.cancel(&id).await,
            Err(error) if self.may_be_inner(&error) => self.inner.cancel_task(request, context).await,
            Err(error) => Err(error),
        }
    }
}
