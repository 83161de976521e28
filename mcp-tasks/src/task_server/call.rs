//! `tools/call`: the checks, in their order, and the decision.

use mcp_tasks_core::{Decision, Json, decide};
use rmcp::model::{CallToolRequestParams, CallToolResponse, CreateTaskResult};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::declared::{ask_guard, declares_tasks, extension_required};
use super::{TaskServer, wire};
use crate::argument::{Arguments, invalid_arguments_result};
use crate::engine::{NewTask, SynchronousCall};

impl<H: ServerHandler> TaskServer<H> {
    /// Before anything is minted: the tool exists, its guard agrees, the extension is declared if it must be, the
    /// arguments fit, the quota has room.
    pub(super) async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let engine = &self.runtime.engine;
        let Some(tool) = engine.registry().get(&request.name) else {
            if self.inner.get_info().capabilities.tools.is_some() {
                return self.inner.call_tool(request, context).await;
            }
            return Err(ErrorData::invalid_params(
                format!("Unknown tool: {}", request.name),
                None,
            ));
        };
        let client = self.client(&context);
        ask_guard(tool.guard, &client.caller).await?;
        let decision = decide(tool.support(), declares_tasks(&context)?);
        if decision == Decision::MissingCapability {
            return Err(extension_required(
                "Missing required client capability: this tool runs only as a task, for clients that declare the extension \
                 io.modelcontextprotocol/tasks",
            ));
        }
        if request.request_state.is_some() {
            return Err(ErrorData::invalid_params("Invalid requestState", None));
        }
        let arguments = request.arguments.unwrap_or_default();
        let mut checked = Arguments::new(arguments.clone());
        tool.descriptor.check(&mut checked);
        if !checked.problems().is_empty() {
            // SEP-1303: a result that a model can read and mend, the same whether the call would be a task or not.
            return Ok(invalid_arguments_result(&tool.name, checked.problems()).into());
        }
        if decision == Decision::Task {
            let arguments =
                Json::of(&arguments).map_err(|error| ErrorData::invalid_params(format!("arguments: {error}"), None))?;
            let record = engine
                .create(NewTask {
                    tool,
                    arguments,
                    client,
                })
                .await?;
            return Ok(CreateTaskResult::new(wire::task(&record)).into());
        }
        let progress = context
            .meta
            .get_progress_token()
            .map(|token| (context.peer.clone(), token));
        let call = SynchronousCall {
            tool,
            arguments,
            client,
            progress,
            cancelled: context.ct.child_token(),
        };
        engine.call(call).await.map(Into::into)
    }
}
