//! The rounds of a call whose state is in its client's hands: opening the `requestState` that a request brings along, and
//! sealing the one that it is answered with.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_tasks_core::{Fingerprint, TaskId, Timestamp};
use rmcp::ErrorData;
use serde_json::Value;

use super::outcome::CallOutcome;
use super::request_state::{Binding, RequestStateCodec};
use super::round::Round;
use super::{Channel, OpenedCall, SingleUse, SynchronousCall};
use crate::run::clock::Clock;
use crate::run::id::new_id;

/// One answer for a state that is not good, whatever is wrong with it.
pub(crate) fn invalid_state() -> ErrorData {
    ErrorData::invalid_params(
        "Invalid requestState: it is damaged, has expired, or belongs to another call",
        None,
    )
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

/// Opens and seals the states of calls.
#[derive(Debug)]
pub(super) struct SealedRounds {
    codec: RequestStateCodec,
    clock: Arc<dyn Clock>,
}

impl SealedRounds {
    pub(super) const fn new(codec: RequestStateCodec, clock: Arc<dyn Clock>) -> Self {
        Self { codec, clock }
    }

    /// Opens the state that the call brings along.
    ///
    /// # Errors
    /// `-32602` for a state that is not good.
    pub(super) fn open<'a>(&self, mut call: SynchronousCall<'a>) -> Result<OpenedCall<'a>, ErrorData> {
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

    /// The open questions of the round, with the sealed state.
    pub(super) fn seal(&self, call: &SynchronousCall<'_>, round: Round) -> Result<CallOutcome, ErrorData> {
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
