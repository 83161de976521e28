//! What one run of a body shares between its context and the engine that drives it.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Wake, Waker};
use std::time::Duration;

use futures::future::BoxFuture;
use mcp_tasks_core::{ClientCapabilities, Cursor, Ledger, TaskId, Timestamp};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::run::clock::{Clock, Timer};
use crate::run::progress::ProgressUpdate;
use crate::tool::error::ToolError;

pub(crate) mod clock;
pub(crate) mod driver;
pub(crate) mod errors;
pub(crate) mod id;
pub(crate) mod origin;
pub(crate) mod progress;

/// What is left of a wait for the run to be put away for it. A wait in the process costs a future, and a write to the store
/// whenever the lease is renewed, every ten seconds by default; one without costs two writes and a replay, however long
/// it is. From about here on it is the cheaper one, and a restart no longer fails the task.
const LONG_WAIT: Duration = Duration::from_secs(10);

/// How many reports of one synchronous call may wait for the connection. A body that reports faster than the client
/// reads loses intermediate ones, never the newest.
const MOST_WAITING_REPORTS: usize = 256;

thread_local! {
    /// Which run's body this thread is polling, so that a call on a context from anywhere else can be told apart.
    static POLLING: Cell<u64> = const { Cell::new(0) };
}

static RUNS: AtomicU64 = AtomicU64::new(1);

fn polling_as<T>(number: u64, poll: impl FnOnce() -> T) -> T {
    struct Restore(u64);
    impl Drop for Restore {
        fn drop(&mut self) {
            POLLING.set(self.0);
        }
    }
    let _restore = Restore(POLLING.replace(number));
    poll()
}

/// Runs a part of a step's work, which is outside the run: it is not done again on a replay, so a call on the context
/// from inside would have no place there, and a question would wait for a step that waits for its answer.
pub(crate) fn apart<T>(poll: impl FnOnce() -> T) -> T {
    polling_as(0, poll)
}

/// What carries a run: a call, or an execution of a task.
pub(crate) trait Carrier: fmt::Debug + Send + Sync {
    /// Whether it is a task, which keeps the newest report alone and has an id that clients know.
    fn is_task(&self) -> bool;

    /// Lets the task live for at least `ttl` from now. Of a call there is nothing to extend.
    fn extend_ttl(&self, ttl: Duration) -> BoxFuture<'_, Result<(), ToolError>>;
}

/// A call, which lives as long as its request.
#[derive(Debug)]
pub(crate) struct InCall;

impl Carrier for InCall {
    fn is_task(&self) -> bool {
        false
    }

    fn extend_ttl(&self, _: Duration) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// What `ctx.defer()` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deferral {
    /// It is an error: the attribute does not say `defer`.
    Refused,
    /// It ends the run, and the call becomes a task.
    Pending,
    /// It does nothing: the task is there already, or there can be none.
    Done,
}

/// What a run is given.
pub(crate) struct RunStart<'a> {
    pub(crate) carrier: Box<dyn Carrier>,
    /// The id of the task, or of the call, which would be the task's.
    pub(crate) id: TaskId,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) ledger: &'a Ledger,
    pub(crate) deferral: Deferral,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) token: CancellationToken,
    /// The highest progress that was reported before.
    pub(crate) progress: Option<f64>,
}

/// Sees what a run does; for the test kit.
pub(crate) trait Watch: Send + Sync {
    /// The work of the step at `ordinal` is called, for the first time or again.
    fn step_called(&self, ordinal: u32, name: &str);

    /// The step at `ordinal` ended, and its result goes into the ledger.
    fn step_kept(&self, ordinal: u32);

    /// A report was taken in.
    fn reported(&self, update: &ProgressUpdate);
}

pub(crate) struct Run {
    number: u64,
    pub(crate) carrier: Box<dyn Carrier>,
    pub(crate) id: TaskId,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) deferral: Deferral,
    pub(crate) token: CancellationToken,
    /// What the body gets: it may fire this one itself without ending its run.
    pub(crate) shown_token: CancellationToken,
    pub(crate) root: Arc<Root>,
    clock: Arc<dyn Clock>,
    deferred: AtomicBool,
    cursor: Mutex<Cursor>,
    /// The wakers of calls on the context that wait, by ordinal.
    waiting: Mutex<BTreeMap<u32, Waker>>,
    /// Until when the waits last that the body polled since the last probe, by ordinal.
    waits: Mutex<BTreeMap<u32, Timestamp>>,
    steps: Mutex<Steps>,
    reports: Mutex<Reports>,
    watch: OnceLock<Arc<dyn Watch>>,
}

/// The steps whose work is under way.
#[derive(Default)]
struct Steps {
    /// By ordinal, what wakes the step.
    wakers: BTreeMap<u32, Waker>,
    /// Whether any was polled since the last probe.
    polled: bool,
}

#[derive(Default)]
struct Reports {
    highest: Option<f64>,
    /// The last one taken in, which is the highest of this run.
    last: Option<ProgressUpdate>,
    waiting: VecDeque<ProgressUpdate>,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

/// A panic while one of these locks is held leaves nothing half done, so a poisoned lock is as good as before.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Run {
    pub(crate) fn new(start: RunStart<'_>) -> Arc<Self> {
        // A child: it fires when the run ends, and the call or task it belongs to may go on in another run.
        let token = start.token.child_token();
        Arc::new(Self {
            number: RUNS.fetch_add(1, Ordering::Relaxed),
            carrier: start.carrier,
            id: start.id,
            capabilities: start.capabilities,
            deferral: start.deferral,
            shown_token: token.child_token(),
            token,
            root: Arc::new(Root::default()),
            clock: start.clock,
            deferred: AtomicBool::new(false),
            cursor: Mutex::new(Cursor::new(start.ledger)),
            waiting: Mutex::default(),
            waits: Mutex::default(),
            steps: Mutex::default(),
            reports: Mutex::new(Reports {
                highest: start.progress,
                last: None,
                waiting: VecDeque::new(),
            }),
            watch: OnceLock::new(),
        })
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A wait on the run's clock.
    pub(crate) fn timer(&self, at: Timestamp) -> Timer {
        self.clock.timer(at)
    }

    /// Shows the run to `watch`, unless another watches already.
    #[cfg(feature = "testing")]
    pub(crate) fn watch(&self, watch: Arc<dyn Watch>) {
        let _ = self.watch.set(watch);
    }

    /// Who watches, if somebody does.
    pub(crate) fn watcher(&self) -> Option<&dyn Watch> {
        self.watch.get().map(|watch| &**watch)
    }

    /// The body has come to the point from which it goes on as a task.
    pub(crate) fn defer(&self) {
        self.deferred.store(true, Ordering::Release);
    }

    pub(crate) fn is_deferred(&self) -> bool {
        self.deferred.load(Ordering::Acquire)
    }

    /// The highest progress that was reported so far.
    pub(crate) fn highest_progress(&self) -> Option<f64> {
        lock(&self.reports).highest
    }

    pub(crate) fn cursor(&self) -> MutexGuard<'_, Cursor> {
        lock(&self.cursor)
    }

    /// Takes the place of a call that is made now. Calls from outside the engine's poll take none: they are refused
    /// when they are polled, and must not shift the places of the body's own.
    pub(crate) fn take_ordinal(&self) -> Option<u32> {
        if !self.is_polling() {
            return None;
        }
        let ordinal = self.cursor().take_ordinal();
        // A recorded answer may have been waiting for just this call.
        self.wake_waiting();
        Some(ordinal)
    }

    /// Runs `poll` as the engine's poll of this run's body.
    pub(crate) fn polling<T>(&self, poll: impl FnOnce() -> T) -> T {
        polling_as(self.number, poll)
    }

    /// Whether the caller is inside the engine's poll of this run's body.
    pub(crate) fn is_polling(&self) -> bool {
        POLLING.get() == self.number
    }

    /// The call at `ordinal` waits for the run to move on.
    pub(crate) fn wait(&self, ordinal: u32, waker: &Waker) {
        // What was there is dropped after the lock is released: a waker may own what calls back here.
        let _before = lock(&self.waiting).insert(ordinal, waker.clone());
    }

    /// The call at `ordinal` waits no more.
    pub(crate) fn stop_waiting(&self, ordinal: u32) {
        let _before = lock(&self.waiting).remove(&ordinal);
    }

    /// The call at `ordinal` waits until `wake`, or for the run to move on.
    pub(crate) fn wait_until(&self, ordinal: u32, wake: Timestamp, waker: &Waker) {
        self.wait(ordinal, waker);
        lock(&self.waits).insert(ordinal, wake);
    }

    /// The call at `ordinal` waits for no instant any more.
    pub(crate) fn stop_waiting_until(&self, ordinal: u32) {
        lock(&self.waits).remove(&ordinal);
    }

    /// Wakes every call that waits, to find out with the next poll of the body which waits it polls.
    pub(crate) fn probe_waits(&self) {
        lock(&self.waits).clear();
        self.wake_waiting();
    }

    /// When the first of the body's waits ends, if that is long enough for the run to be put away.
    pub(crate) fn long_wait(&self) -> Option<Timestamp> {
        let wake = lock(&self.waits).values().min().copied()?;
        (wake.saturating_since(self.now()) >= LONG_WAIT).then_some(wake)
    }

    /// What a timer of the run wakes: all calls that wait. It does not count as somebody outside.
    pub(crate) fn timer_waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::new(TimeGoesBy(Arc::downgrade(self))))
    }

    /// Wakes whoever waits for the run to move on.
    pub(crate) fn wake_waiting(&self) {
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        for waker in waiting.into_values() {
            waker.wake();
        }
    }

    /// The waker of the body's polls. Not inlined, so that all of them are known to wake the same: two places that make one
    /// may make it with two tables of functions.
    #[inline(never)]
    pub(crate) fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.root))
    }

    /// The step at `ordinal` was polled, and waits for its work.
    pub(crate) fn step_waits(&self, ordinal: u32, waker: &Waker) {
        let mut steps = lock(&self.steps);
        steps.polled = true;
        steps.wakers.insert(ordinal, waker.clone());
    }

    /// The work of the step at `ordinal` is over.
    pub(crate) fn step_ended(&self, ordinal: u32) {
        lock(&self.steps).wakers.remove(&ordinal);
    }

    /// Wakes every step whose work is under way, to find out with the next poll of the body which of them it polls.
    pub(crate) fn probe_steps(&self) {
        let wakers: Vec<_> = {
            let mut steps = lock(&self.steps);
            steps.polled = false;
            steps.wakers.values().cloned().collect()
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether the body polled any step since the last probe.
    pub(crate) fn polled_steps(&self) -> bool {
        lock(&self.steps).polled
    }

    /// Whether something besides this run's own waiting calls could wake the body. A combinator that wraps wakers
    /// counts as such, so `true` may be said too often, and `false` never.
    pub(crate) fn can_be_woken(&self, waker: &Waker) -> bool {
        let waits = || lock(&self.waits).values().any(|wake| *wake > self.now());
        self.is_waiting_outside(waker) || waits()
    }

    /// As [`can_be_woken`](Self::can_be_woken), by something else than that time goes by.
    pub(crate) fn is_waiting_outside(&self, waker: &Waker) -> bool {
        self.root.woken.load(Ordering::Acquire) || self.outside_wakers(waker) > 0
    }

    /// How many wakers of the body others than this run's own waiting calls hold.
    pub(crate) fn outside_wakers(&self, waker: &Waker) -> usize {
        // One count for the run, one for the waker at hand.
        const OURS: usize = 2;
        let waiting = lock(&self.waiting);
        let steps = lock(&self.steps);
        let own = waiting
            .values()
            .chain(steps.wakers.values())
            .filter(|w| w.will_wake(waker))
            .count();
        Arc::strong_count(&self.root).saturating_sub(OURS + own)
    }

    /// Takes a report in, unless it is not above the last one or no number at all. On the synchronous path every report
    /// is kept for the client; a task keeps the newest.
    pub(crate) fn report(&self, update: ProgressUpdate) {
        let mut reports = lock(&self.reports);
        let progress = update.progress();
        if !progress.is_finite() || reports.highest.is_some_and(|highest| progress <= highest) {
            tracing::debug!(progress, "progress that does not increase is dropped");
            return;
        }
        reports.highest = Some(progress);
        reports.last = Some(update.clone());
        if let Some(watch) = self.watcher() {
            watch.reported(&update);
        }
        if self.carrier.is_task() {
            reports.waiting.clear();
        } else if reports.waiting.len() >= MOST_WAITING_REPORTS {
            reports.waiting.pop_back();
        }
        reports.waiting.push_back(update);
        drop(reports);
        if !self.is_polling() {
            self.root.notify.notify_one();
        }
    }

    pub(crate) fn has_reports(&self) -> bool {
        !lock(&self.reports).waiting.is_empty()
    }

    /// The last report, sent or not: a write that was to send it may have been dropped on its way when the run ended.
    pub(crate) fn last_report(&self) -> Option<ProgressUpdate> {
        lock(&self.reports).last.clone()
    }

    pub(crate) fn take_reports(&self) -> Vec<ProgressUpdate> {
        lock(&self.reports).waiting.drain(..).collect()
    }
}

/// The waker of the timers of a run.
struct TimeGoesBy(Weak<Run>);

impl Wake for TimeGoesBy {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(run) = self.0.upgrade() {
            run.wake_waiting();
            run.root.wake_by_ref();
        }
    }
}

/// The waker of a body's poll.
#[derive(Debug, Default)]
pub(crate) struct Root {
    /// Set by a wake, cleared by the poll that follows.
    pub(crate) woken: AtomicBool,
    /// Brings the driver back, to poll or to look at reports.
    pub(crate) notify: Notify,
}

impl Wake for Root {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.notify.notify_one();
    }
}
