//! One run of a body, which stops where it ends, where it may be stopped after an entry, and where time has to pass.

use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures::future::BoxFuture;
use mcp_tasks_core::{Ledger, Mismatch, Timestamp};
use tokio::time::Instant;

use super::TestClock;
use super::recorder::Recorder;
use crate::run::Run;
use crate::run::body::Body;
use crate::run::driver::drive;
use crate::run::ending::Ending;
use crate::run::progress::ProgressUpdate;
use crate::run::sink::{Sink, Written};

/// Why a run does not go on by itself.
pub(super) enum Stopped {
    Ended(Ending),
    /// Nothing happens before this instant.
    Sleeps(Timestamp),
    /// Nothing happens any more.
    Hangs,
}

/// What a run leaves.
pub(super) struct BodyRunResult {
    pub(super) ledger: Ledger,
    /// Where it left the recorded path, also where a server shows the error that it ended with instead.
    pub(super) mismatch: Option<Mismatch>,
    /// The highest that was reported.
    pub(super) progress: Option<f64>,
}

/// Keeps each ledger that is written, and stops a run that is held as soon as nothing of it runs any more.
struct Writer {
    run: Arc<Run>,
    recorder: Arc<Recorder>,
    stops: AtomicBool,
    begun: Instant,
}

impl Sink for Writer {
    // Reports are taken where they are made.
    const REPORT_INTERVAL: Duration = Duration::ZERO;

    fn first_write_due(&self) -> Option<Instant> {
        let cursor = self.run.cursor();
        let stops = cursor.is_held() && !cursor.is_stepping() && !cursor.is_unsaved();
        self.stops.store(stops, Ordering::Relaxed);
        // Long due.
        stops.then_some(self.begun)
    }

    fn write(&self, ledger: Option<Ledger>, _: Vec<ProgressUpdate>) -> BoxFuture<'static, Written> {
        if let Some(ledger) = ledger {
            self.recorder.stored(&ledger);
        }
        let stops = self.stops.load(Ordering::Relaxed);
        Box::pin(async move { if stops { Written::Fenced } else { Written::Done } })
    }
}

pub(super) struct BodyRun {
    run: Arc<Run>,
    clock: TestClock,
    driving: Pin<Box<dyn Future<Output = Ending> + Send>>,
}

impl BodyRun {
    /// `hold`: whether the run stops after the first entry that it adds.
    pub(super) fn new(run: Arc<Run>, body: Body, clock: TestClock, recorder: Arc<Recorder>, hold: bool) -> Self {
        run.observe(recorder.clone());
        if hold {
            run.cursor().hold_after_entry();
        }
        let writer = Writer {
            run: run.clone(),
            recorder,
            stops: AtomicBool::new(false),
            begun: Instant::now(),
        };
        let driven = run.clone();
        // A body that is made to wait by tokio's budget would look as if it had nothing to do.
        let driving = Box::pin(tokio::task::unconstrained(async move {
            drive(&driven, body, &writer, pending()).await
        }));
        Self { run, clock, driving }
    }

    /// Drives the run until it needs something.
    pub(super) async fn next(&mut self) -> Stopped {
        loop {
            let stopped = poll_fn(|cx| match self.driving.as_mut().poll(cx) {
                Poll::Ready(ending) => Poll::Ready(Stopped::Ended(ending)),
                Poll::Pending => self.idle().map_or(Poll::Pending, Poll::Ready),
            })
            .await;
            if let Stopped::Sleeps(_) = stopped {
                // A branch that only made way for the others goes on before time does.
                tokio::task::yield_now().await;
                if self.is_woken() {
                    continue;
                }
            }
            return stopped;
        }
    }

    fn is_woken(&self) -> bool {
        self.run.wakers.is_body_woken()
    }

    /// What a run that is pending waits for, if it is none of the world's business.
    fn idle(&self) -> Option<Stopped> {
        let waker = self.run.wakers.body_waker();
        // Wakers that are held outside: by timers, sockets, threads; not by this function, calls on the context or waits on
        // the clock. Counted before the flag is read, as a wake sets the flag before it drops its waker.
        let outside = self
            .run
            .wakers
            .outside(&waker)
            .saturating_sub(1 + self.clock.waits_of(&waker));
        if self.is_woken() {
            return None;
        }
        // A step may well take its time in the real world, and the clock stands still for it.
        if outside > 0 && self.run.cursor().is_stepping() {
            return None;
        }
        match self.clock.next_wake() {
            Some(at) => Some(Stopped::Sleeps(at)),
            None if outside > 0 => None,
            None if self.release() => None,
            None => Some(Stopped::Hangs),
        }
    }

    /// Lets a run go on that is held and hangs, as a step waits for what the body does after another one.
    fn release(&self) -> bool {
        let mut cursor = self.run.cursor();
        let held = cursor.is_held();
        cursor.release();
        drop(cursor);
        if held {
            self.run.wakers.wake_waiting();
        }
        held
    }

    /// What the run leaves, once it has ended.
    pub(super) fn finish(self) -> BodyRunResult {
        drop(self.driving);
        let mut cursor = self.run.cursor();
        BodyRunResult {
            ledger: cursor.ledger(),
            mismatch: cursor.mismatch().cloned(),
            progress: self.run.highest_progress(),
        }
    }
}
