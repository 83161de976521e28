//! What is to be done after a poll of the body.

use std::task::Waker;
use std::time::Duration;

use mcp_tasks_core::Timestamp;
use rmcp::model::CallToolResult;

use crate::run::Run;
use crate::run::ending::Ending;
use crate::tool::error::ToolError;

/// What is left of a wait for the run to be put away for it. A wait in the process costs a future, and a write to the store
/// whenever the lease is renewed, every ten seconds by default; one without costs two writes and a replay, however long
/// it is. From about here on it is the cheaper one, and a restart no longer fails the task.
const LONG_WAIT: Duration = Duration::from_secs(10);

/// When the first of the body's waits ends, if that is long enough for the run to be put away.
fn long_wait(run: &Run) -> Option<Timestamp> {
    let wake = run.wakers.first_wait_ends()?;
    (wake.saturating_since(run.now()) >= LONG_WAIT).then_some(wake)
}

/// Whether the body was polled since the last decision.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Polled {
    Not,
    Once,
    /// To see which of its steps it polls.
    ToProbe,
}

/// What is to be done after a poll.
pub(super) enum Next {
    End(Ending),
    PollAgain,
    /// The run is to end, but for steps that run: whether the body still polls them has to be found out.
    Probe,
    /// The run is to be put away: which waits the body still polls has to be found out.
    ProbeWaits,
    Wait,
    /// Recorded answers wait, and only something outside the context can bring the body on.
    Blocked,
}

/// Asks the cursor, in the order that its documentation gives, what is to be done after a poll.
pub(super) fn decide(
    run: &Run,
    returned: Option<Result<CallToolResult, ToolError>>,
    writing: bool,
    can_rest: bool,
    polled: Polled,
    waker: &Waker,
) -> Next {
    let mut cursor = run.cursor();
    if let Some(fault) = cursor.fault() {
        return Next::End(Ending::Faulted(fault.clone()));
    }
    if cursor.mismatch().is_none() {
        match returned {
            // Whatever a body returns with a question open does not count: the question wins.
            // Its steps went with it.
            Some(_) if cursor.is_asking() => {
                cursor.abandon_steps();
                return Next::End(Ending::Suspended(cursor.suspend()));
            }
            Some(outcome) => {
                cursor.finish();
                match cursor.mismatch() {
                    None => return Next::End(Ending::Returned(outcome)),
                    // An error says more than that the body did not get as far as before: it is why.
                    Some(mismatch) if outcome.is_err() => {
                        tracing::warn!(%mismatch, "the tool failed before it was where it had been");
                        return Next::End(Ending::Returned(outcome));
                    }
                    Some(_) => {}
                }
            }
            None if cursor.settle() => return Next::PollAgain,
            None if cursor.is_stepping() && (cursor.is_asking() || run.is_deferred()) => {
                match polled {
                    Polled::Not => return Next::Wait,
                    Polled::Once => return Next::Probe,
                    Polled::ToProbe if run.wakers.has_polled_steps() => return Next::Wait,
                    Polled::ToProbe => {}
                }
                tracing::warn!(
                    "a step was started and is not polled while the tool waits; it is given up and done again when the tool \
                     comes by again. Await it, or drop it, before asking"
                );
                cursor.abandon_steps();
                return Next::PollAgain;
            }
            None if cursor.can_suspend() => return Next::End(Ending::Suspended(cursor.suspend())),
            None if run.is_deferred() && !cursor.is_stepping() => {
                return Next::End(Ending::Deferred(cursor.ledger()));
            }
            None if cursor.is_blocked() && !writing => {
                if run.wakers.can_be_woken(waker, run.now()) {
                    return Next::Blocked;
                }
                cursor.stalled();
            }
            None => {
                // What else the body waits for would be lost with it.
                if can_rest
                    && !writing
                    && let Some(wake) = long_wait(run)
                    && cursor.can_rest()
                    && !run.wakers.is_waiting_outside(waker)
                {
                    return match polled {
                        Polled::ToProbe => Next::End(Ending::Asleep(cursor.ledger(), wake)),
                        Polled::Once | Polled::Not => Next::ProbeWaits,
                    };
                }
            }
        }
    }
    match cursor.mismatch() {
        Some(mismatch) => Next::End(Ending::Diverged(mismatch.clone())),
        None => Next::Wait,
    }
}
