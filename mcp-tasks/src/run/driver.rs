//! Drives one run of a body: polls it, journals its steps, sends its reports, and sees when it must be parked.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::future::BoxFuture;
use mcp_tasks_core::{Fault, Ledger, Mismatch, Suspension, Timestamp};
use rmcp::model::CallToolResult;
use tokio::time::Instant;

use super::Run;
use crate::ToolError;
use crate::run::progress::ProgressUpdate;

/// A tool's body, called.
pub(crate) type Body = BoxFuture<'static, Result<CallToolResult, ToolError>>;

/// How a run ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The body returned.
    Returned(Result<CallToolResult, ToolError>),
    /// The body waits for answers.
    Suspended(Suspension),
    /// The body waits for nothing but that time goes by, until this instant at least, from this ledger.
    Asleep(Ledger, Timestamp),
    /// The body goes on as a task, from this ledger.
    Deferred(Ledger),
    /// The body left the recorded path.
    Diverged(Mismatch),
    /// The body made a mistake that fails the task.
    Faulted(Fault),
    /// The body panicked, with these words.
    Panicked(String),
    /// The cancellation token fired.
    Cancelled,
    /// Time is up.
    Expired,
    /// The record belongs to another execution, or is terminal or gone: nothing this run does counts any more.
    Fenced,
    /// What the run has to keep is refused where it is to be kept, and would be again.
    Refused,
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// Stored or sent, or given up for good where nothing depends on it.
    Done,
    /// The run is fenced off.
    Fenced,
    /// Refused for good.
    Refused,
}

/// Where a run's ledger and reports go.
pub(crate) trait Sink: Send {
    /// The shortest time between two writes that carry nothing but reports.
    const REPORT_INTERVAL: Duration;

    /// When the ledger is to be written even if nothing waits for it; `None` if never.
    fn first_write_due(&self) -> Option<Instant> {
        None
    }

    /// Whether a run can be put away while its body waits for time to go by.
    fn can_rest(&self) -> bool {
        false
    }

    /// Stores `ledger`, if the body waits for that, and sends `reports`.
    fn write(&self, ledger: Option<Ledger>, reports: Vec<ProgressUpdate>) -> BoxFuture<'static, Written>;
}

/// Drives `body` to its end, or until the token of `run` fires or `stopped` resolves, with how the run ends then. The body
/// is dropped when this returns.
pub(crate) async fn drive<S: Sink>(
    run: &Run,
    body: Body,
    sink: &S,
    stopped: impl Future<Output = Ending> + Send,
) -> Ending {
    // However the run ends, work that it left behind on other threads learns of it.
    let _ended = run.token.clone().drop_guard();
    let mut body = Guarded(Some(body));
    let waker = run.waker();
    let mut blocked: Option<Instant> = None;
    let mut stopped = pin!(stopped);
    let mut write: Option<(BoxFuture<'static, Written>, Option<Ledger>)> = None;
    let mut reported: Option<Instant> = None;
    let mut probing = false;
    run.root.woken.store(true, Ordering::Release);

    loop {
        // A body that is always ready, and a store that is too, leave the thread to others now and then all the same.
        tokio::task::coop::consume_budget().await;
        let mut returned = None;
        let mut panicked = None;
        let mut polled = Polled::Not;
        if run.root.woken.swap(false, Ordering::AcqRel) {
            polled = if std::mem::take(&mut probing) {
                Polled::ToProbe
            } else {
                Polled::Once
            };
            match body.poll(run, &waker) {
                Ok(Poll::Pending) => {}
                Ok(Poll::Ready(outcome)) => returned = Some(outcome),
                Err(panic) => panicked = Some(Next::End(Ending::Panicked(panic))),
            }
        }
        match panicked.unwrap_or_else(|| look(run, returned, write.is_some(), sink.can_rest(), polled, &waker)) {
            Next::End(ending) => {
                // What is on its way arrives first: given up halfway its reports would be lost or come after the end, and
                // a task that is being created would be there and never end.
                tokio::select! {
                    biased;
                    () = run.token.cancelled() => {}
                    _ = &mut stopped => {}
                    () = landed(write) => {}
                }
                return ending;
            }
            Next::PollAgain => {
                run.wake_waiting();
                run.root.woken.store(true, Ordering::Release);
                continue;
            }
            Next::Probe => {
                run.probe_steps();
                probing = true;
                run.root.woken.store(true, Ordering::Release);
                continue;
            }
            Next::ProbeWaits => {
                run.probe_steps();
                run.probe_waits();
                probing = true;
                run.root.woken.store(true, Ordering::Release);
                continue;
            }
            Next::Wait => blocked = None,
            Next::Blocked => {
                let since = *blocked.get_or_insert_with(Instant::now);
                if since.elapsed() >= LONG_BLOCKED {
                    // Once only: the next time is an age away.
                    blocked = Some(since + Duration::from_secs(u64::from(u32::MAX)));
                    tracing::warn!(
                        "a replay waits for something outside the context (a timer, a socket, a token) before it can go on; \
                         if the tool has changed it may wait until the task expires. Use ctx.sleep and ctx.step for what the \
                         tool waits for"
                    );
                }
            }
        }
        let mut wake_at = blocked.map(|since| since + LONG_BLOCKED);
        if write.is_none() {
            let now = Instant::now();
            let first_due = sink.first_write_due();
            let ledger = {
                let mut cursor = run.cursor();
                let due = cursor.is_unsaved() || first_due.is_some_and(|due| due <= now);
                due.then(|| cursor.ledger())
            };
            let report_due = reported.map_or(now, |at| at + S::REPORT_INTERVAL);
            if ledger.is_some() || (report_due <= now && run.has_reports()) {
                let reports = run.take_reports();
                if !reports.is_empty() {
                    reported = Some(now);
                }
                write = Some((sink.write(ledger.clone(), reports), ledger));
            } else {
                wake_at = first_due
                    .into_iter()
                    .chain(run.has_reports().then_some(report_due))
                    .chain(wake_at)
                    .min();
            }
        }
        tokio::select! {
            biased;
            () = run.token.cancelled() => return Ending::Cancelled,
            ending = &mut stopped => return ending,
            (written, ledger) = in_flight(&mut write) => {
                write = None;
                match written {
                    Written::Done => {}
                    Written::Fenced => return Ending::Fenced,
                    Written::Refused => return Ending::Refused,
                }
                if let Some(ledger) = ledger {
                    run.cursor().saved(&ledger);
                    run.wake_waiting();
                }
            }
            () = run.root.notify.notified() => {}
            () = until(wake_at) => {}
        }
    }
}

/// Whether the body was polled since the last look.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Polled {
    Not,
    Once,
    /// To see which of its steps it polls.
    ToProbe,
}

/// What is to be done after a poll.
enum Next {
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

/// After how long the log says that a replay waits: longer than ordinary work between two calls on the context.
const LONG_BLOCKED: Duration = Duration::from_secs(10);

/// Asks the cursor, in the order that its documentation gives, what is to be done after a poll.
fn look(
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
                    Polled::ToProbe if run.polled_steps() => return Next::Wait,
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
                if run.can_be_woken(waker) {
                    return Next::Blocked;
                }
                cursor.stalled();
            }
            None => {
                // What else the body waits for would be lost with it.
                if can_rest
                    && !writing
                    && let Some(wake) = run.long_wait()
                    && cursor.can_rest()
                    && !run.is_waiting_outside(waker)
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

async fn landed(write: Option<(BoxFuture<'static, Written>, Option<Ledger>)>) {
    if let Some((write, _)) = write {
        write.await;
    }
}

async fn in_flight(write: &mut Option<(BoxFuture<'static, Written>, Option<Ledger>)>) -> (Written, Option<Ledger>) {
    match write {
        Some((future, ledger)) => {
            let written = future.await;
            (written, ledger.take())
        }
        None => std::future::pending().await,
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// A body whose panics, in a poll or when it is dropped, stop at the engine.
struct Guarded(Option<Body>);

impl Guarded {
    fn poll(&mut self, run: &Run, waker: &Waker) -> Result<Poll<Result<CallToolResult, ToolError>>, String> {
        let Some(body) = &mut self.0 else {
            return Ok(Poll::Pending);
        };
        let mut context = Context::from_waker(waker);
        let polled = catch_unwind(AssertUnwindSafe(|| run.polling(|| body.as_mut().poll(&mut context))));
        match polled {
            Ok(Poll::Pending) => Ok(Poll::Pending),
            Ok(Poll::Ready(outcome)) => {
                self.discard();
                Ok(Poll::Ready(outcome))
            }
            Err(payload) => Err(panic_text(payload)),
        }
    }

    fn discard(&mut self) {
        let body = self.0.take();
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(body))) {
            tracing::error!(
                panic = panic_text(payload),
                "a tool's body panicked while it was dropped"
            );
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.discard();
    }
}

/// The words of a panic. The payload itself is dropped with care: its own `Drop` may panic.
pub(crate) fn panic_text(payload: Box<dyn Any + Send>) -> String {
    let text = payload
        .downcast_ref::<&'static str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic whose payload is no text".to_owned());
    let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    text
}
