//! `tools/call`: its tool, its checks, and how it is carried.

use mcp_tasks_core::{Decision, Json};
use rmcp::model::{CallToolRequestParams, CallToolResponse, CreateTaskResult, InputRequiredResult};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::admission::{Admission, admit};
use super::declared::{declares_tasks, is_stateless};
use super::{TaskServer, wire};
use crate::engine::{Answer, Channel, Deferral, NewTask, Started, SynchronousCall};

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
        let arguments = request.arguments.unwrap_or_default();
        let declares = || declares_tasks(&context);
        let (decision, deferral) = match admit(tool, &client.caller, declares, &arguments).await? {
            Admission::Run { decision, deferral } => (decision, deferral),
            Admission::Answered(result) => return Ok((*result).into()),
        };
        // A call that was begun as one is ended as one, also for a client that declares tasks only now: what it was told and
        // did so far is in its state.
        let resumes = request.request_state.is_some();
        if decision == Decision::Task && deferral == Deferral::Refused && !resumes {
            let arguments =
                Json::of(&arguments).map_err(|error| ErrorData::invalid_params(format!("arguments: {error}"), None))?;
            let new = NewTask {
                tool,
                arguments,
                client,
                before: None,
            };
            return match tool.grace {
                None => Ok(CreateTaskResult::new(wire::task(&*engine.create(new).await?)).into()),
                Some(grace) => Ok(match engine.start_with_grace(new, grace, context.ct.clone()).await? {
                    Started::Result(result) => (*result).into(),
                    Started::Task(record) => CreateTaskResult::new(wire::task(&record)).into(),
                }),
            };
        }
        let channel = if is_stateless(&context) {
            let responses = wire::responses(request.input_responses.unwrap_or_default());
            Channel::Rounds {
                state: request.request_state,
                responses,
            }
        } else {
            Channel::Session(context.peer.clone())
        };
        let progress = context
            .meta
            .get_progress_token()
            .map(|token| (context.peer.clone(), token));
        let cancelled = context.ct.child_token();
        let call = SynchronousCall {
            tool,
            arguments,
            client,
            channel,
            deferral,
            progress,
            cancelled,
        };
        Ok(match engine.call(call).await? {
            Answer::Result(result) => (*result).into(),
            Answer::Task(record) => CreateTaskResult::new(wire::task(&record)).into(),
            Answer::InputRequired { open, state } => {
                InputRequiredResult::new(Some(wire::input_requests(&open)?), Some(state)).into()
            }
        })
    }
}
