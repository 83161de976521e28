//! `tasks/get`, `tasks/update` and `tasks/cancel` (Tasks extension, SEP-2663), in rmcp's types.

use mcp_tasks_core::TaskId;
use rmcp::model::{CancelTaskParams, GetTaskParams, GetTaskResult, UpdateTaskParams};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::TaskServer;
use super::request::extension;
use crate::host::operations::{CancelTask, GetTask, TaskRefusal, UpdateTask};
use crate::host::wire::{self, TaskJson};

impl<H: ServerHandler> TaskServer<H> {
    /// Whether the task that we do not have may be one of the wrapped handler's.
    fn may_be_inner(&self, refusal: &TaskRefusal) -> bool {
        matches!(refusal, TaskRefusal::Unknown) && self.inner.get_info().capabilities.supports_tasks()
    }

    pub(super) async fn task_get(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let get = GetTask {
            id: TaskId::new(&request.task_id),
            caller: self.caller(&context)?,
            extension: extension(&context),
        };
        match self.operations.get(get).await {
            Ok(record) => TaskJson::polled(&record)?.to_result(),
            Err(refusal) if self.may_be_inner(&refusal) => self.inner.get_task(request, context).await,
            Err(refusal) => Err(refusal.into()),
        }
    }

    pub(super) async fn task_update(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let update = UpdateTask {
            id: TaskId::new(&request.task_id),
            client: self.client(&context)?,
            extension: extension(&context),
            responses: wire::responses(&request.input_responses),
        };
        match self.operations.update(update).await {
            Err(refusal) if self.may_be_inner(&refusal) => self.inner.update_task(request, context).await,
            outcome => Ok(outcome?),
        }
    }

    pub(super) async fn task_cancel(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let cancel = CancelTask {
            id: TaskId::new(&request.task_id),
            caller: self.caller(&context)?,
            extension: extension(&context),
        };
        match self.operations.cancel(cancel).await {
            Err(refusal) if self.may_be_inner(&refusal) => self.inner.cancel_task(request, context).await,
            outcome => Ok(outcome?),
        }
    }
}
