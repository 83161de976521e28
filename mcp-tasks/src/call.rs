//! A tool inside a call: no record, and the questions go back the way the call came.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use mcp_tasks_core::{Fingerprint, InputRequest, Json, Ledger, TaskId, Timestamp};
use rmcp::model::{CallToolResult, ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::call::request_state::{Binding, RequestStateCodec};
use crate::run::clock::Clock;
use crate::run::driver::drive;
use crate::run::ending::Ending;
use crate::run::errors::{cancelled, report_mismatch};
use crate::run::id::new_id;
use crate::run::origin::RequestOrigin;
use crate::run::progress::ProgressUpdate;
use crate::run::sink::{Sink, Written};
use crate::run::{Deferral, InCall, Run, RunStart};
use crate::tool::invocation::Invocation;
use crate::tool::registry::RegisteredTool;
use crate::tool::state::StateMap;
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
    pub(crate) origin: RequestOrigin,
    pub(crate) channel: Channel,
    /// What `ctx.defer()` does.
    pub(crate) deferral: Deferral,
    /// Where `notifications/progress` go, if the client asked for them.
    pub(crate) progress: Option<(Peer<RoleServer>, ProgressToken)>,
    /// Fires when the client goes away.
    pub(crate) cancelled: CancellationToken,
}

impl SynchronousCall<'_> {
    /// What the states of this call belong to. Not for every call: most ask nothing, and a hash of all arguments costs more
    /// than the rest.
    fn binding(&self) -> Binding<'_> {
        Binding {
            principal: self.origin.caller.principal(),
            method: "tools/call",
            tool: &self.tool.name,
            arguments: Fingerprint::of("arguments", "", Some(&Value::Object(self.arguments.clone()))),
        }
    }
}

/// What a call came to.
#[derive(Debug)]
pub(crate) enum CallOutcome {
    Result(Box<CallToolResult>),
    /// The client is asked, and brings the state back along with its answers.
    InputRequired {
        open: Vec<InputRequest>,
        state: String,
    },
    /// The body goes on as a task.
    Deferred(DeferredCall),
}

/// A call that is to become a task.
#[derive(Debug)]
pub(crate) struct DeferredCall {
    /// The id of the call, which becomes the task's.
    pub(crate) id: TaskId,
    pub(crate) arguments: Json,
    pub(crate) origin: RequestOrigin,
    /// What the call was told and did so far.
    pub(crate) ledger: Ledger,
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
pub(crate) fn invalid_state() -> ErrorData {
    ErrorData::invalid_params(
        "Invalid requestState: it is damaged, has expired, or belongs to another call",
        None,
    )
}

/// Runs tools inside their calls.
#[derive(Debug)]
pub(crate) struct CallRunner {
    codec: RequestStateCodec,
    clock: Arc<dyn Clock>,
    states: Arc<StateMap>,
}

impl CallRunner {
    pub(crate) const fn new(codec: RequestStateCodec, clock: Arc<dyn Clock>, states: Arc<StateMap>) -> Self {
        Self { codec, clock, states }
    }

    /// Opens the state that the call brings along.
    ///
    /// # Errors
    /// `-32602` for a state that is not good.
    pub(crate) fn open<'a>(&self, mut call: SynchronousCall<'a>) -> Result<OpenedCall<'a>, ErrorData> {
        let mut early = BTreeMap::new();
        let mut single_use = None;
        let round = match &mut call.channel {
            Channel::Rounds { state: None, responses } => {
                early = std::mem::take(responses);
                Round::first(new_id()?, call.tool.version.clone())
            }
            Channel::Session(_) => Round::first(new_id()?, call.tool.version.clone()),
            Channel::Rounds { state: Some(state), .. } => {
                let state = std::mem::take(state);
                let (round, expiry) = self.open_round(&call, &state)?;
                if call.tool.descriptor.single_use {
                    let print = Fingerprint::of("request-state", "", Some(&Value::from(state)));
                    single_use = Some(SingleUse {
                        key: TaskId::new(&print.to_hex()),
                        until: expiry,
                    });
                }
                round
            }
        };
        Ok(OpenedCall {
            call,
            round,
            early,
            single_use,
        })
    }

    /// Runs the tool inside the call.
    ///
    /// # Errors
    /// The JSON-RPC error of the tool, `-32602` for a body that does not repeat itself, or `-32603` when it panicked.
    pub(crate) async fn run(&self, opened: OpenedCall<'_>) -> Result<CallOutcome, ErrorData> {
        let OpenedCall {
            mut call,
            mut round,
            mut early,
            ..
        } = opened;
        if let Channel::Rounds {
            state: Some(_),
            responses,
        } = &mut call.channel
        {
            round.answer(&std::mem::take(responses));
            // Each request says for itself what its client can be asked (2026-07-28, "Multi Round-Trip Requests",
            // "Server Requirements").
            round.refuse_what_is_beyond(&call.origin.capabilities);
            if !round.open.is_empty() {
                return self.ask_in_rounds(&call, round);
            }
        }
        let mut highest = None;
        loop {
            let (ending, progress) = self.run_once(&call, &round, highest).await;
            highest = progress;
            match ending {
                Ending::Suspended(suspension) => round.park(suspension),
                ending => return end_call(ending, call, round),
            }
            match &call.channel {
                Channel::Rounds { .. } => {
                    // Answers that came with the very first request were given before they were asked for; they are as
                    // good as if the client had waited to be asked.
                    round.answer(&std::mem::take(&mut early));
                    if !round.open.is_empty() {
                        return self.ask_in_rounds(&call, round);
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
            capabilities: call.origin.capabilities.clone(),
            ledger: &round.ledger,
            deferral: call.deferral,
            clock: self.clock.clone(),
            token: call.cancelled.clone(),
            progress,
        });
        let invocation = Invocation::new(
            run.clone(),
            call.origin.caller.clone(),
            self.states.clone(),
            call.arguments.clone(),
        );
        let sink = PeerSink {
            to: call.progress.clone(),
        };
        let body = (call.tool.descriptor.call)(invocation);
        let ending = drive(&run, body, &sink, std::future::pending()).await;
        // What was reported last goes out before the response, and nothing after it.
        PeerSink::send(sink.to, run.take_reports()).await;
        (ending, run.highest_progress())
    }

    /// Sends the open questions back with the sealed state.
    fn ask_in_rounds(&self, call: &SynchronousCall<'_>, round: Round) -> Result<CallOutcome, ErrorData> {
        let unsealable = |error: &dyn std::fmt::Display| {
            tracing::error!(%error, tool = %call.tool.name, "a call cannot ask");
            ErrorData::internal_error(format!("The tool cannot ask: {error}"), None)
        };
        let inside = serde_json::to_vec(&round).map_err(|error| unsealable(&error))?;
        let state = self
            .codec
            .seal(&call.binding(), self.clock.now(), &inside)
            .map_err(|error| unsealable(&error))?;
        Ok(CallOutcome::InputRequired {
            open: round.open,
            state,
        })
    }

    fn open_round(&self, call: &SynchronousCall<'_>, state: &str) -> Result<(Round, Timestamp), ErrorData> {
        let tool = call.tool;
        let (inside, expiry) = self
            .codec
            .open(&call.binding(), self.clock.now(), state)
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
        Ok((round, expiry))
    }
}

fn end_call(ending: Ending, call: SynchronousCall<'_>, round: Round) -> Result<CallOutcome, ErrorData> {
    match ending {
        Ending::Returned(Ok(result)) => Ok(CallOutcome::Result(Box::new(result))),
        Ending::Returned(Err(error)) => error.into_outcome().map(|result| CallOutcome::Result(Box::new(result))),
        Ending::Deferred(ledger) => {
            let arguments = Json::of(&call.arguments)
                .map_err(|error| ErrorData::invalid_params(format!("arguments: {error}"), None))?;
            Ok(CallOutcome::Deferred(DeferredCall {
                id: round.id,
                arguments,
                origin: call.origin,
                ledger,
            }))
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
