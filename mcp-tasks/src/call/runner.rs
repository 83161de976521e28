//! Runs tools inside their calls.

use std::sync::Arc;

use rmcp::ErrorData;

use super::outcome::{CallOutcome, end_call};
use super::progress::PeerSink;
use super::request_state::RequestStateCodec;
use super::round::Round;
use super::sealed::SealedRounds;
use super::{Channel, OpenedCall, SynchronousCall};
use crate::run::clock::Clock;
use crate::run::driver::drive;
use crate::run::ending::Ending;
use crate::run::errors::cancelled;
use crate::run::{InCall, Run, RunStart};
use crate::tool::invocation::Invocation;
use crate::tool::state::StateMap;

/// Runs tools inside their calls.
#[derive(Debug)]
pub(crate) struct CallRunner {
    sealed: SealedRounds,
    clock: Arc<dyn Clock>,
    states: Arc<StateMap>,
}

impl CallRunner {
    pub(crate) fn new(codec: RequestStateCodec, clock: Arc<dyn Clock>, states: Arc<StateMap>) -> Self {
        Self {
            sealed: SealedRounds::new(codec, clock.clone()),
            clock,
            states,
        }
    }

    /// Opens the state that the call brings along.
    ///
    /// # Errors
    /// `-32602` for a state that is not good.
    pub(crate) fn open<'a>(&self, call: SynchronousCall<'a>) -> Result<OpenedCall<'a>, ErrorData> {
        self.sealed.open(call)
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
                return self.sealed.seal(&call, round);
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
                        return self.sealed.seal(&call, round);
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
        sink.send(run.take_reports()).await;
        (ending, run.highest_progress())
    }
}
