//! `tools/call`: the checks, and how the call is carried.

use std::sync::Arc;

use mcp_tasks_core::{Decision, Json, decide};
use rmcp::model::{JsonObject, ProgressToken};
use rmcp::service::Peer;
use rmcp::{ErrorData, RoleServer};
use tokio_util::sync::CancellationToken;

use super::{Admission, Operations, admit, answered, run_to_end};
use crate::call::{Answer, Channel, SynchronousCall};
use crate::host::extension::TasksExtension;
use crate::run::Deferral;
use crate::task::{Client, Engine, NewTask, Started};
use crate::tool::registry::RegisteredTool;

/// A call of one of our tools.
#[derive(Debug)]
pub(crate) struct CallTool {
    pub(crate) tool: Arc<RegisteredTool>,
    pub(crate) arguments: JsonObject,
    pub(crate) client: Client,
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
pub(crate) fn becomes_task_at_once(tool: &RegisteredTool, extension: TasksExtension, has_state: bool) -> bool {
    let decision = decide(tool.support(), extension == TasksExtension::Declared);
    starts_task(tool, decision, has_state)
}

/// A call that brings a `requestState` was begun as one and is ended as one, also for a client that declares tasks only
/// now: what it was told and did so far is in that state.
fn starts_task(tool: &RegisteredTool, decision: Decision, has_state: bool) -> bool {
    decision == Decision::Task && !tool.descriptor.defer() && !has_state
}

impl Operations {
    /// Checks the call and carries it to its answer. Before anything is minted: the tool's guard agrees, the extension is
    /// declared if it must be, the arguments fit, the quota has room.
    ///
    /// # Errors
    /// The guard's; `-32602` for an extension that is declared wrongly; `-32021` for a tool that needs it; those of the
    /// tool and of the store.
    pub(crate) async fn call(&self, call: CallTool) -> Result<Answer, ErrorData> {
        let engine = self.engine.clone();
        if matches!(call.channel, Channel::Rounds { .. }) && call.progress.is_none() {
            return run_to_end(async move { call.carry(&engine).await }).await;
        }
        // rmcp knows by the task it runs this in to which stream the questions and reports of a call belong, and drives
        // that task to its end itself.
        answered(Box::pin(call.carry(&engine))).await
    }
}

impl CallTool {
    async fn carry(self, engine: &Engine) -> Result<Answer, ErrorData> {
        let admitted = admit(&self.tool, &self.client.caller, self.extension, &self.arguments).await?;
        let (decision, deferral) = match admitted {
            Admission::Run { decision, deferral } => (decision, deferral),
            Admission::Answered(result) => return Ok(Answer::Result(result)),
        };
        let has_state = matches!(self.channel, Channel::Rounds { state: Some(_), .. });
        if starts_task(&self.tool, decision, has_state) {
            self.start_task(engine).await
        } else {
            self.run_inside(engine, deferral).await
        }
    }

    async fn start_task(self, engine: &Engine) -> Result<Answer, ErrorData> {
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
                Started::Result(result) => Answer::Result(result),
                Started::Task(record) => Answer::Task(record),
            }),
        }
    }

    async fn run_inside(self, engine: &Engine, deferral: Deferral) -> Result<Answer, ErrorData> {
        let call = SynchronousCall {
            tool: &self.tool,
            arguments: self.arguments,
            client: self.client,
            channel: self.channel,
            deferral,
            progress: self.progress,
            cancelled: self.gone.child_token(),
        };
        engine.call(call).await
    }
}
