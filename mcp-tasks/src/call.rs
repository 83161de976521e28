//! A tool inside a call: no record, and the questions go back the way the call came.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use mcp_tasks_core::{
    ClientCapabilities, Fingerprint, InputRequest, Json, Ledger, Principal, StoreError, TaskRecord, Timestamp,
};
use rmcp::model::{CallToolResult, ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::call::request_state::Binding;
use crate::run::driver::{Ending, Sink, Written, drive};
use crate::run::progress::ProgressUpdate;
use crate::run::{Deferral, InCall, Run, RunStart};
use crate::task::execution::report_mismatch;
use crate::task::write::{REQUEST_PATIENCE, patiently};
use crate::task::{Client, Engine, NewTask, store_failed};
use crate::tool::invocation::Invocation;
use crate::tool::registry::RegisteredTool;
use round::Round;

mod live;
pub(crate) mod request_state;
pub(crate) mod round;

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
    pub(crate) client: Client,
    pub(crate) channel: Channel,
    /// What `ctx.defer()` does.
    pub(crate) deferral: Deferral,
    /// Where `notifications/progress` go, if the client asked for them.
    pub(crate) progress: Option<(Peer<RoleServer>, ProgressToken)>,
    /// Fires when the client goes away.
    pub(crate) cancelled: CancellationToken,
}

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

/// Sends reports as `notifications/progress` (2026-07-28, "Progress").
struct PeerSink {
    to: Option<(Peer<RoleServer>, ProgressToken)>,
}

impl PeerSink {
    async fn send(to: Option<(Peer<RoleServer>, ProgressToken)>, reports: Vec<ProgressUpdate>) {
        let Some((peer, token)) = to else { return };
        for report in reports {
            let mut params = ProgressNotificationParam::new(token.clone(), report.progress());
            params.total = report.total;
            params.message = report.message;
            if let Err(error) = peer.notify_progress(params).await {
                tracing::debug!(%error, "a progress notification could not be sent");
                return;
            }
        }
    }
}

impl Sink for PeerSink {
    // Every report is a message of its own here, and the connection slows the body's reports down by itself.
    const REPORT_INTERVAL: Duration = Duration::ZERO;

    fn write(&self, _ledger: Option<Ledger>, reports: Vec<ProgressUpdate>) -> BoxFuture<'static, Written> {
        let to = self.to.clone();
        Box::pin(async move {
            Self::send(to, reports).await;
            Written::Done
        })
    }
}

/// One answer for a state that is not good, whatever is wrong with it.
fn invalid_state() -> ErrorData {
    ErrorData::invalid_params(
        "Invalid requestState: it is damaged, has expired, or belongs to another call",
        None,
    )
}

impl Engine {
    /// Runs the tool inside the call.
    ///
    /// # Errors
    /// The JSON-RPC error of the tool, `-32602` for a `requestState` that is not good or a body that does not repeat
    /// itself, or `-32603` when it panicked.
    pub(crate) async fn call(&self, mut call: SynchronousCall<'_>) -> Result<Answer, ErrorData> {
        let caller = call.client.caller.shared_principal();
        let tool = call.tool.clone();
        // Only where there is a state: most calls ask nothing, and a hash of all arguments costs more than the rest.
        let binding = |arguments: &Map<String, Value>| Binding {
            principal: caller.as_deref(),
            method: "tools/call",
            tool: &tool.name,
            arguments: Fingerprint::of("arguments", "", Some(&Value::Object(arguments.clone()))),
        };
        let mut early = BTreeMap::new();
        let mut round = match &mut call.channel {
            Channel::Rounds { state: None, responses } => {
                early = std::mem::take(responses);
                Round::first(Self::new_id()?, tool.version.clone())
            }
            Channel::Session(_) => Round::first(Self::new_id()?, tool.version.clone()),
            Channel::Rounds {
                state: Some(state),
                responses,
            } => {
                let mut round = self.open_round(&binding(&call.arguments), state, &tool).await?;
                round.answer(responses);
                // Each request says for itself what its client can be asked (2026-07-28, "Multi Round-Trip Requests",
                // "Server Requirements").
                round.refuse_what_is_beyond(&call.client.capabilities);
                if !round.open.is_empty() {
                    return self.ask_in_rounds(&binding(&call.arguments), round);
                }
                round
            }
        };
        let mut highest = None;
        loop {
            let (ending, progress) = self.run_once(&call, &round, highest).await;
            highest = progress;
            match ending {
                Ending::Suspended(suspension) => round.park(suspension),
                ending => return self.end_call(ending, call, round).await,
            }
            match &call.channel {
                Channel::Rounds { .. } => {
                    // Answers that came with the very first request were given before they were asked for; they are as
                    // good as if the client had waited to be asked.
                    round.answer(&std::mem::take(&mut early));
                    if !round.open.is_empty() {
                        return self.ask_in_rounds(&binding(&call.arguments), round);
                    }
                }
                Channel::Session(peer) => {
                    while !round.open.is_empty() {
                        tokio::select! {
                            asked = round.ask(peer) => asked.map_err(|error| {
                                ErrorData::internal_error(format!("the client cannot be reached: {error}"), None)
                            })?,
                            () = call.cancelled.cancelled() => return Err(cancelled()),
                        }
                    }
                }
            }
        }
    }

    /// Runs the body once, from the top. Also returns the highest progress reported.
    async fn run_once(
        &self,
        call: &SynchronousCall<'_>,
        round: &Round,
        progress: Option<f64>,
    ) -> (Ending, Option<f64>) {
        let run = Run::new(RunStart {
            carrier: Box::new(InCall),
            id: round.id.clone(),
            capabilities: call.client.capabilities.clone(),
            ledger: &round.ledger,
            deferral: call.deferral,
            clock: self.inner.clock.clone(),
            token: call.cancelled.clone(),
            progress,
        });
        let invocation = Invocation::new(
            run.clone(),
            call.client.caller.clone(),
            self.inner.states.clone(),
            call.arguments.clone(),
        );
        let sink = PeerSink {
            to: call.progress.clone(),
        };
        let body = call.tool.descriptor.call(invocation);
        let ending = drive(&run, body, &sink, std::future::pending()).await;
        // What was reported last goes out before the response, and nothing after it.
        PeerSink::send(sink.to, run.take_reports()).await;
        (ending, run.highest_progress())
    }

    async fn end_call(&self, ending: Ending, call: SynchronousCall<'_>, round: Round) -> Result<Answer, ErrorData> {
        match ending {
            Ending::Returned(Ok(result)) => Ok(Answer::Result(Box::new(result))),
            Ending::Returned(Err(error)) => error.into_outcome().map(|result| Answer::Result(Box::new(result))),
            Ending::Deferred(ledger) => {
                let arguments = Json::of(&call.arguments)
                    .map_err(|error| ErrorData::invalid_params(format!("arguments: {error}"), None))?;
                let new = NewTask {
                    tool: call.tool,
                    arguments,
                    client: call.client,
                    before: Some((round.id, ledger)),
                };
                self.create(new).await.map(Answer::Task)
            }
            Ending::Diverged(mismatch) => Err(report_mismatch(mismatch, None, call.tool)),
            Ending::Panicked(panic) => {
                tracing::error!(panic, tool = %call.tool.name, "the tool panicked");
                Err(ErrorData::internal_error("The tool failed unexpectedly", None))
            }
            Ending::Faulted(fault) => {
                tracing::error!(%fault, tool = %call.tool.name, "the tool's body is wrong");
                Err(ErrorData::internal_error(format!("Internal error: {fault}"), None))
            }
            Ending::Cancelled => Err(cancelled()),
            ending => {
                tracing::error!(?ending, tool = %call.tool.name, "a call ended in a way it cannot");
                Err(ErrorData::internal_error("Internal error", None))
            }
        }
    }

    /// Sends the open questions back with the sealed state.
    fn ask_in_rounds(&self, binding: &Binding<'_>, round: Round) -> Result<Answer, ErrorData> {
        let unsealable = |error: &dyn std::fmt::Display| {
            tracing::error!(%error, tool = binding.tool, "a call cannot ask");
            ErrorData::internal_error(format!("The tool cannot ask: {error}"), None)
        };
        let inside = serde_json::to_vec(&round).map_err(|error| unsealable(&error))?;
        let state = self
            .inner
            .request_state
            .seal(binding, self.now(), &inside)
            .map_err(|error| unsealable(&error))?;
        Ok(Answer::InputRequired {
            open: round.open,
            state,
        })
    }

    async fn open_round(&self, binding: &Binding<'_>, state: &str, tool: &RegisteredTool) -> Result<Round, ErrorData> {
        let (inside, expiry) = self
            .inner
            .request_state
            .open(binding, self.now(), state)
            .ok_or_else(invalid_state)?;
        let round: Round = serde_json::from_slice(&inside).map_err(|_| invalid_state())?;
        if round.version != tool.version {
            let name = |version: &Option<Arc<str>>| version.as_deref().unwrap_or("none").to_owned();
            return Err(ErrorData::invalid_params(
                format!(
                    "handler changed: the call was begun by version {} of {:?}, and this server has version {}; begin it anew",
                    name(&round.version),
                    tool.name,
                    name(&tool.version),
                ),
                None,
            ));
        }
        if tool.descriptor.single_use() {
            self.use_up(state, expiry).await?;
        }
        Ok(round)
    }

    /// Marks a state as used, in the store, so that every node knows.
    async fn use_up(&self, state: &str, expiry: Timestamp) -> Result<(), ErrorData> {
        self.start_background();
        let now = self.now();
        let print = Fingerprint::of("request-state", "", Some(&Value::from(state)));
        let nothing = Json::from(serde_json::value::RawValue::NULL.to_owned());
        let mut mark = TaskRecord::new(
            mcp_tasks_core::TaskId::new(&print.to_hex()),
            "".into(),
            nothing.clone(),
            ClientCapabilities::new(nothing),
            now,
            // At the very instant of its expiry a state is still good, and so must the mark be.
            Some(expiry.saturating_since(now) + Duration::from_millis(1)),
            Duration::from_millis(1),
        );
        // Nobody's, so that nobody can look at it as a task.
        let owner = Principal::new("request-state").with_issuer("mcp-tasks:internal");
        mark.principal = Some(Arc::new(owner));
        mark.status = mcp_tasks_core::TaskStatus::Cancelled;
        mark.last_write = Some(self.write_id());
        match patiently(REQUEST_PATIENCE, || self.inner.store.create(mark.clone())).await {
            Ok(_) => Ok(()),
            Err(StoreError::AlreadyExists { .. }) => Err(invalid_state()),
            Err(error) => Err(store_failed(&error)),
        }
    }
}

pub(crate) fn cancelled() -> ErrorData {
    ErrorData::internal_error("the call was cancelled", None)
}
