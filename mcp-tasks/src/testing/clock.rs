//! A clock that is set by hand.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use mcp_tasks_core::Timestamp;

use crate::host::{Clock, Timer};

/// 2026-07-28T00:00:00Z, the day of the protocol's revision: any fixed instant would do.
const START: Timestamp = Timestamp::from_millis(1_785_196_800_000);

/// A clock that stands still until it is set; cloning shares it.
///
/// A [`TestTool`](super::TestTool) has one of its own, or is [given](super::TestTool::clock) one, and lets it jump to the
/// end of a [`sleep`](crate::ToolContext::sleep) that the tool is in. For tests of a whole server,
/// [`TaskRuntime::builder().clock(..)`](crate::host::TaskRuntimeBuilder::clock) takes it: then tools that sleep wake up, and
/// tasks that run expire, when the test sets the clock.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use mcp_tasks::TaskRuntime;
/// use mcp_tasks::testing::TestClock;
///
/// let clock = TestClock::new();
/// let runtime = TaskRuntime::builder().without_inventory().clock(Arc::new(clock.clone())).build()?;
/// let before = clock.time();
/// clock.advance(Duration::from_secs(3600));
/// assert_eq!(clock.time().duration_since(before).unwrap(), Duration::from_secs(3600));
/// # let _ = runtime;
/// # Ok::<(), mcp_tasks::StartError>(())
/// ```
#[derive(Clone)]
pub struct TestClock {
    state: Arc<Mutex<ClockState>>,
}

struct ClockState {
    now: Timestamp,
    waits: Vec<Wait>,
    next_id: u64,
}

struct Wait {
    id: u64,
    until: Timestamp,
    waker: Waker,
}

impl fmt::Debug for TestClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestClock").field("now", &self.now()).finish()
    }
}

impl Default for TestClock {
    fn default() -> Self {
        Self::new()
    }
}

impl TestClock {
    /// A clock that shows the same instant in every test: midnight UTC of 28 July 2026.
    #[must_use]
    pub fn new() -> Self {
        Self::starting(START)
    }

    /// A clock that shows `time`, in whole milliseconds.
    #[must_use]
    pub fn at(time: SystemTime) -> Self {
        Self::starting(time.into())
    }

    fn starting(now: Timestamp) -> Self {
        let state = ClockState {
            now,
            waits: Vec::new(),
            next_id: 0,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// What it shows.
    #[must_use]
    pub fn time(&self) -> SystemTime {
        self.now().into()
    }

    /// Sets it, backwards too, and wakes the futures that waited for that.
    pub fn set(&self, time: SystemTime) {
        self.set_to(time.into());
    }

    /// Moves it on, in whole milliseconds, and wakes the futures that waited for that.
    pub fn advance(&self, by: Duration) {
        let now = self.now().saturating_add(by);
        self.set_to(now);
    }

    pub(super) fn set_to(&self, now: Timestamp) {
        let mut state = self.lock();
        state.now = now;
        let woken: Vec<Waker> = state
            .waits
            .iter()
            .filter(|wait| wait.until <= now)
            .map(|wait| wait.waker.clone())
            .collect();
        // Not under the lock: a waker may do anything.
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// The earliest end of the waits on this clock.
    pub(super) fn next_wake(&self) -> Option<Timestamp> {
        self.lock().waits.iter().map(|wait| wait.until).min()
    }

    /// How many waits hold a waker that wakes what `waker` wakes.
    pub(super) fn waits_of(&self, waker: &Waker) -> usize {
        let state = self.lock();
        state.waits.iter().filter(|wait| wait.waker.will_wake(waker)).count()
    }

    fn lock(&self) -> MutexGuard<'_, ClockState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        self.lock().now
    }

    fn timer(&self, at: Timestamp) -> Timer {
        let mut state = self.lock();
        state.next_id += 1;
        Box::pin(Waiting {
            id: state.next_id,
            until: at,
            clock: self.clone(),
        })
    }
}

struct Waiting {
    id: u64,
    until: Timestamp,
    clock: TestClock,
}

impl Future for Waiting {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.clock.lock();
        state.waits.retain(|wait| wait.id != self.id);
        if state.now >= self.until {
            return Poll::Ready(());
        }
        state.waits.push(Wait {
            id: self.id,
            until: self.until,
            waker: cx.waker().clone(),
        });
        Poll::Pending
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let id = self.id;
        self.clock.lock().waits.retain(|wait| wait.id != id);
    }
}
