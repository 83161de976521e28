//! `tools/call`: its tool, its checks, and how it is carried.

use std::sync::Arc;

use mcp_tasks_core::{Decision, InputRequest, Json, TaskRecord};
use rmcp::model::ProgressToken;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CreateTaskResult, InputRequiredResult, JsonObject,
};
use rmcp::service::{Peer, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio_util::sync::CancellationToken;

use super::admission::{Admission, admit};
use super::declared::{declares_tasks, is_stateless};
use super::{TaskServer, wire};
use crate::call::{CallOutcome, Channel, SynchronousCall, invalid_state};
use crate::host::TaskRuntime;
use crate::run::Deferral;
use crate::run::origin::RequestOrigin;
use crate::task::{NewTask, Started};
use crate::tool::registry::RegisteredTool;

/// How a call is answered.
#[derive(Debug)]
pub(crate) enum Answer {
    Result(Box<CallToolResult>),
    /// With questions, and the state to bring back along with their answers.
    InputRequired {
        open: Vec<InputRequest>,
        state: String,
    },
    /// The call has become a task.
    Task(Arc<TaskRecord>),
}

/// A call of one of our tools, whichever way it came.
#[derive(Debug)]
pub(crate) struct ToolCall<'a> {
    pub(crate) tool: &'a Arc<RegisteredTool>,
    pub(crate) arguments: JsonObject,
    pub(crate) client: RequestOrigin,
    pub(crate) channel: Channel,
    /// Where `notifications/progress` go, if the client asked for them.
    pub(crate) progress: Option<(Peer<RoleServer>, ProgressToken)>,
    /// Fires when the client goes away.
    pub(crate) gone: CancellationToken,
}

impl ToolCall<'_> {
    /// Checks the call and carries it to its answer. Before anything is minted: the tool's guard agrees, the extension is
    /// declared if it must be, the arguments fit, the quota has room.
    ///
    /// # Errors
    /// The guard's, that of `declares`, and those of the engine.
    pub(crate) async fn carry(
        self,
        runtime: &TaskRuntime,
        declares: impl FnOnce() -> Result<bool, ErrorData>,
    ) -> Result<Answer, ErrorData> {
        let (tool, engine) = (self.tool, &runtime.engine);
        let (decision, deferral) = match admit(tool, &self.client.caller, declares, &self.arguments).await? {
            Admission::Run { decision, deferral } => (decision, deferral),
            Admission::Answered(result) => return Ok(Answer::Result(result)),
        };
        // A call that was begun as one is ended as one, also for a client that declares tasks only now: what it was told and
        // did so far is in its state.
        let resumes = matches!(self.channel, Channel::Rounds { state: Some(_), .. });
        if decision == Decision::Task && deferral == Deferral::Refused && !resumes {
            let arguments = Json::of(&self.arguments)
                .map_err(|error| ErrorData::invalid_params(format!("arguments: {error}"), None))?;
            let new = NewTask {
                tool,
                arguments,
                client: self.client,
                before: None,
            };
            // Where the task is left to other nodes there is nothing to wait for.
            return match tool.grace.filter(|_| !engine.hands_over(tool)) {
                None => engine.create(new).await.map(Answer::Task),
                Some(grace) => Ok(match engine.start_with_grace(new, grace, self.gone).await? {
                    Started::Result(result) => Answer::Result(result),
                    Started::Task(record) => Answer::Task(record),
                }),
            };
        }
        let call = SynchronousCall {
            tool,
            arguments: self.arguments,
            origin: self.client,
            channel: self.channel,
            deferral,
            progress: self.progress,
            cancelled: self.gone.child_token(),
        };
        let opened = runtime.calls.open(call)?;
        if let Some(single) = opened.single_use()
            && !engine.use_once(single.key.clone(), single.until).await?
        {
            return Err(invalid_state());
        }
        match runtime.calls.run(opened).await? {
            CallOutcome::Result(result) => Ok(Answer::Result(result)),
            CallOutcome::InputRequired { open, state } => Ok(Answer::InputRequired { open, state }),
            CallOutcome::Deferred(deferred) => {
                let new = NewTask {
                    tool,
                    arguments: deferred.arguments,
                    client: deferred.origin,
                    before: Some((deferred.id, deferred.ledger)),
                };
                engine.create(new).await.map(Answer::Task)
            }
        }
    }
}

/// The answer as rmcp has it.
///
/// # Errors
/// When a question cannot be shown.
pub(crate) fn response(answer: Answer) -> Result<CallToolResponse, ErrorData> {
    Ok(match answer {
        Answer::Result(result) => (*result).into(),
        Answer::Task(record) => CreateTaskResult::new(wire::task(&record)).into(),
        Answer::InputRequired { open, state } => {
            InputRequiredResult::new(Some(wire::input_requests(&open)?), Some(state)).into()
        }
    })
}

/// `-32602` for a tool that nobody has.
fn unknown_tool(name: &str) -> ErrorData {
    ErrorData::invalid_params(format!("Unknown tool: {name}"), None)
}

impl<H: ServerHandler> TaskServer<H> {
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
            return Err(unknown_tool(&request.name));
        };
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
        let call = ToolCall {
            tool,
            arguments: request.arguments.unwrap_or_default(),
            client: self.client(&context),
            channel,
            progress,
            gone: context.ct.clone(),
        };
        response(call.carry(&self.runtime, || declares_tasks(&context)).await?)
    }
}
