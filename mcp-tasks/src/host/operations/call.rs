//! `tools/call`: the checks, and how the call is carried.

use std::sync::Arc;

use mcp_tasks_core::{Decision, InputRequest, Json, TaskRecord};
use rmcp::model::{CallToolResult, JsonObject, ProgressToken};
use rmcp::service::Peer;
use rmcp::{ErrorData, RoleServer};
use tokio_util::sync::CancellationToken;

use super::{Admission, Operations, admit, answered, run_to_end};
use crate::call::{CallOutcome, Channel, SynchronousCall, invalid_state};
use crate::host::extension::TasksExtension;
use crate::run::Deferral;
use crate::run::origin::RequestOrigin;
use crate::task::{GraceAnswer, NewTask};
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

/// A call of one of our tools.
#[derive(Debug)]
pub(crate) struct CallTool {
    pub(crate) tool: Arc<RegisteredTool>,
    pub(crate) arguments: JsonObject,
    pub(crate) client: RequestOrigin,
    pub(crate) extension: TasksExtension,
    pub(crate) channel: Channel,
    /// Where `notifications/progress` go, if the client asked for them.
    pub(crate) progress: Option<(Peer<RoleServer>, ProgressToken)>,
    /// Fires when the client goes away.
    pub(crate) gone: CancellationToken,
}

/// `-32602` for a name that no tool has.
pub(crate) fn unknown_tool(name: &str) -> ErrorData {
    ErrorData::invalid_params(format!("Unknown tool: {name}"), None)
}

/// Whether a call that is not refused becomes a task before its tool runs, and so reports nothing itself.
#[cfg(feature = "http")]
pub(crate) fn becomes_task_at_once(tool: &RegisteredTool, extension: TasksExtension, has_state: bool) -> bool {
    let decision = mcp_tasks_core::decide(tool.support(), extension == TasksExtension::Declared);
    starts_task(tool, decision, has_state)
}

/// A call that brings a `requestState` was begun as one and is ended as one, also for a client that declares tasks only
/// now: what it was told and did so far is in that state.
fn starts_task(tool: &RegisteredTool, decision: Decision, has_state: bool) -> bool {
    decision == Decision::Task && !tool.descriptor.defer && !has_state
}

impl Operations {
    /// Checks the call and carries it to its answer. Before anything is minted: the tool's guard agrees, the extension is
    /// declared if it must be, the arguments fit, the quota has room.
    ///
    /// # Errors
    /// The guard's; `-32602` for an extension that is declared wrongly; `-32021` for a tool that needs it; those of the
    /// tool and of the store.
    pub(crate) async fn call(&self, call: CallTool) -> Result<Answer, ErrorData> {
        let operations = self.clone();
        if matches!(call.channel, Channel::Rounds { .. }) && call.progress.is_none() {
            return run_to_end(async move { call.carry(&operations).await }).await;
        }
        // rmcp knows by the task it runs this in to which stream the questions and reports of a call belong, and drives
        // that task to its end itself.
        answered(Box::pin(call.carry(&operations))).await
    }
}

impl CallTool {
    async fn carry(self, operations: &Operations) -> Result<Answer, ErrorData> {
        let admitted = admit(&self.tool, &self.client.caller, self.extension, &self.arguments).await?;
        let (decision, deferral) = match admitted {
            Admission::Run { decision, deferral } => (decision, deferral),
            Admission::Answered(result) => return Ok(Answer::Result(result)),
        };
        let has_state = matches!(self.channel, Channel::Rounds { state: Some(_), .. });
        if starts_task(&self.tool, decision, has_state) {
            self.start_task(operations).await
        } else {
            self.run_inside(operations, deferral).await
        }
    }

    async fn start_task(self, operations: &Operations) -> Result<Answer, ErrorData> {
        let engine = &operations.engine;
        let arguments = Json::of(&self.arguments)
            .map_err(|error| ErrorData::invalid_params(format!("arguments: {error}"), None))?;
        let new = NewTask {
            tool: &self.tool,
            arguments,
            client: self.client,
            before: None,
        };
        // Where the task is left to other nodes there is nothing to wait for.
        match self.tool.grace.filter(|_| !engine.hands_over(&self.tool)) {
            None => engine.create(new).await.map(Answer::Task),
            Some(grace) => Ok(match engine.start_with_grace(new, grace, self.gone).await? {
                GraceAnswer::Result(result) => Answer::Result(result),
                GraceAnswer::Task(record) => Answer::Task(record),
            }),
        }
    }

    async fn run_inside(self, operations: &Operations, deferral: Deferral) -> Result<Answer, ErrorData> {
        let call = SynchronousCall {
            tool: &self.tool,
            arguments: self.arguments,
            origin: self.client,
            channel: self.channel,
            deferral,
            progress: self.progress,
            cancelled: self.gone.child_token(),
        };
        let (engine, calls) = (&operations.engine, &operations.calls);
        let opened = calls.open(call)?;
        if let Some(single) = opened.single_use()
            && !engine.use_once(single.key.clone(), single.until).await?
        {
            return Err(invalid_state());
        }
        match calls.run(opened).await? {
            CallOutcome::Result(result) => Ok(Answer::Result(result)),
            CallOutcome::InputRequired { open, state } => Ok(Answer::InputRequired { open, state }),
            CallOutcome::Deferred(deferred) => {
                let new = NewTask {
                    tool: &self.tool,
                    arguments: deferred.arguments,
                    client: deferred.origin,
                    before: Some((deferred.id, deferred.ledger)),
                };
                engine.create(new).await.map(Answer::Task)
            }
        }
    }
}
