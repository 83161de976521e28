//! Drives one run of a body: polls it, journals its steps, sends its reports, and sees when it must be parked.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures::future::BoxFuture;
use mcp_tasks_core::Ledger;
use tokio::time::Instant;

use super::Run;
use super::body::{Body, GuardedBody};
use super::ending::Ending;
use super::sink::{Sink, Written};
use decision::{Next, Polled, decide};

mod decision;

/// After how long the log says that a replay waits: longer than ordinary work between two calls on the context.
const LONG_BLOCKED: Duration = Duration::from_secs(10);

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
    let mut body = GuardedBody::new(body);
    let waker = run.wakers.body_waker();
    let mut blocked: Option<Instant> = None;
    let mut stopped = pin!(stopped);
    let mut write: Option<(BoxFuture<'static, Written>, Option<Ledger>)> = None;
    let mut reported: Option<Instant> = None;
    let mut probing = false;
    run.wakers.mark_body_woken();

    loop {
        // A body that is always ready, and a store that is too, leave the thread to others now and then all the same.
        tokio::task::coop::consume_budget().await;
        let mut returned = None;
        let mut panicked = None;
        let mut polled = Polled::Not;
        if run.wakers.take_body_woken() {
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
        match panicked.unwrap_or_else(|| decide(run, returned, write.is_some(), sink.can_rest(), polled, &waker)) {
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
                run.wakers.wake_waiting();
                run.wakers.mark_body_woken();
                continue;
            }
            Next::Probe => {
                run.wakers.probe_steps();
                probing = true;
                run.wakers.mark_body_woken();
                continue;
            }
            Next::ProbeWaits => {
                run.wakers.probe_steps();
                run.wakers.probe_waits();
                probing = true;
                run.wakers.mark_body_woken();
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
                    run.wakers.wake_waiting();
                }
            }
            () = run.wakers.driver_notified() => {}
            () = until(wake_at) => {}
        }
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
