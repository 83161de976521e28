//! A tool inside a call: no record, and the questions go back the way the call came.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_tasks_core::{Json, TaskId, Timestamp};
use rmcp::RoleServer;
use rmcp::service::Peer;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::run::Deferral;
use crate::run::origin::RequestOrigin;
use crate::tool::registry::RegisteredTool;
use progress::ProgressTarget;
use round::Round;

mod live;
mod outcome;
mod progress;
pub(crate) mod request_state;
pub(crate) mod round;
mod runner;
mod sealed;

pub(crate) use outcome::CallOutcome;
pub(crate) use runner::CallRunner;
pub(crate) use sealed::invalid_state;

/// How a call's questions reach its client.
#[derive(Debug)]
pub(crate) enum Channel {
    /// As rounds of the call (2026-07-28): what this request brought along.
    Rounds {
        state: Option<String>,
        responses: BTreeMap<String, Json>,
    },
    /// As requests of the server's own (2025-11-25).
    Session(Peer<RoleServer>),
}

/// A call whose arguments were checked and whose guard passed.
#[derive(Debug)]
pub(crate) struct SynchronousCall<'a> {
    pub(crate) tool: &'a Arc<RegisteredTool>,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) origin: RequestOrigin,
    pub(crate) channel: Channel,
    /// What `ctx.defer()` does.
    pub(crate) deferral: Deferral,
    /// Where `notifications/progress` go, if the client asked for them.
    pub(crate) progress: Option<ProgressTarget>,
    /// Fires when the client goes away.
    pub(crate) cancelled: CancellationToken,
}

/// A sealed state that is good for one request.
#[derive(Debug)]
pub(crate) struct SingleUse {
    /// Names the state, and is as long as an id of a task.
    pub(crate) key: TaskId,
    pub(crate) until: Timestamp,
}

/// A call whose `requestState`, if it has one, is open.
#[derive(Debug)]
pub(crate) struct OpenedCall<'a> {
    call: SynchronousCall<'a>,
    round: Round,
    /// Answers that came with the very first request.
    early: BTreeMap<String, Json>,
    single_use: Option<SingleUse>,
}

impl OpenedCall<'_> {
    /// What has to be used up, in the store, before the call is run.
    pub(crate) const fn single_use(&self) -> Option<&SingleUse> {
        self.single_use.as_ref()
    }
}
