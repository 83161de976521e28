//! What a run's body waits for, and what wakes it: answers and results from the ledger, steps under way, time, and anything
//! outside the context.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Wake, Waker};

use mcp_tasks_core::Timestamp;
use tokio::sync::Notify;

use super::lock;

/// The wakers of one run's body.
#[derive(Default)]
pub(crate) struct Wakers {
    body: Arc<BodyWaker>,
    /// The wakers of calls on the context that wait, by ordinal.
    waiting: Mutex<BTreeMap<u32, Waker>>,
    /// Until when the waits last that the body polled since the last probe, by ordinal.
    waits: Mutex<BTreeMap<u32, Timestamp>>,
    steps: Mutex<Steps>,
}

/// The steps whose work is under way.
#[derive(Default)]
struct Steps {
    /// By ordinal, what wakes the step.
    wakers: BTreeMap<u32, Waker>,
    /// Whether any was polled since the last probe.
    polled: bool,
}

impl fmt::Debug for Wakers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wakers")
            .field("body", &self.body)
            .finish_non_exhaustive()
    }
}

impl Wakers {
    /// The waker of the body's polls. Not inlined, so that all of them are known to wake the same: two places that make one
    /// may make it with two tables of functions.
    #[inline(never)]
    pub(crate) fn body_waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.body))
    }

    /// Whether the body was woken since the last poll.
    pub(crate) fn is_body_woken(&self) -> bool {
        self.body.is_woken.load(Ordering::Acquire)
    }

    /// As [`is_body_woken`](Self::is_body_woken), for the poll that follows.
    pub(super) fn take_body_woken(&self) -> bool {
        self.body.is_woken.swap(false, Ordering::AcqRel)
    }

    /// Has the body polled again.
    pub(super) fn mark_body_woken(&self) {
        self.body.is_woken.store(true, Ordering::Release);
    }

    /// Brings the driver back, to poll or to send reports.
    pub(super) fn notify_driver(&self) {
        self.body.driver.notify_one();
    }

    pub(super) async fn driver_notified(&self) {
        self.body.driver.notified().await;
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

    /// Wakes the calls that wait for the run to move on.
    pub(crate) fn wake_waiting(&self) {
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        for waker in waiting.into_values() {
            waker.wake();
        }
    }

    /// Wakes every call that waits, to find out with the next poll of the body which waits it polls.
    pub(super) fn probe_waits(&self) {
        lock(&self.waits).clear();
        self.wake_waiting();
    }

    /// When the first of the body's waits ends.
    pub(super) fn first_wait_ends(&self) -> Option<Timestamp> {
        lock(&self.waits).values().min().copied()
    }

    /// What a timer of the run wakes: all calls that wait. It does not count as [outside](Self::is_waiting_outside).
    pub(crate) fn timer_waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::new(TimerWaker(Arc::downgrade(self))))
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
    pub(super) fn probe_steps(&self) {
        let wakers: Vec<_> = {
            let mut steps = lock(&self.steps);
            steps.polled = false;
            steps.wakers.values().cloned().collect()
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether the body polled any step since the last probe.
    pub(super) fn has_polled_steps(&self) -> bool {
        lock(&self.steps).polled
    }

    /// Whether something besides this run's own waiting calls could wake the body after `now`. A combinator that wraps wakers
    /// counts as such, so `true` may be said too often, and `false` never.
    pub(super) fn can_be_woken(&self, waker: &Waker, now: Timestamp) -> bool {
        let waits = || lock(&self.waits).values().any(|wake| *wake > now);
        self.is_waiting_outside(waker) || waits()
    }

    /// As [`can_be_woken`](Self::can_be_woken), by something else than that time goes by.
    pub(super) fn is_waiting_outside(&self, waker: &Waker) -> bool {
        self.is_body_woken() || self.outside(waker) > 0
    }

    /// How many wakers of the body are held by others than this run's own waiting calls.
    pub(crate) fn outside(&self, waker: &Waker) -> usize {
        // One count for the run, one for the waker at hand.
        const OURS: usize = 2;
        let waiting = lock(&self.waiting);
        let steps = lock(&self.steps);
        let own = waiting
            .values()
            .chain(steps.wakers.values())
            .filter(|w| w.will_wake(waker))
            .count();
        Arc::strong_count(&self.body).saturating_sub(OURS + own)
    }
}

/// The waker of the timers of a run.
struct TimerWaker(Weak<Wakers>);

impl Wake for TimerWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(wakers) = self.0.upgrade() {
            wakers.wake_waiting();
            wakers.body.wake_by_ref();
        }
    }
}

/// The waker of a body's poll.
#[derive(Debug, Default)]
struct BodyWaker {
    /// Set by a wake, cleared by the poll that follows.
    is_woken: AtomicBool,
    /// Brings the driver back.
    driver: Notify,
}

impl Wake for BodyWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.driver.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wakers_of_waiting_calls_and_steps_are_not_outside() {
        let wakers = Wakers::default();
        let waker = wakers.body_waker();
        wakers.wait(1, &waker);
        wakers.step_waits(2, &waker);
        assert!(!wakers.is_waiting_outside(&waker));
        let held = waker.clone();
        assert_eq!((wakers.outside(&waker), wakers.is_waiting_outside(&waker)), (1, true));
        drop(held);
        wakers.step_ended(2);
        wakers.stop_waiting(1);
        assert!(!wakers.is_waiting_outside(&waker));
    }

    #[test]
    fn a_timer_wakes_the_calls_that_wait_and_is_not_outside() {
        let wakers = Arc::new(Wakers::default());
        let waker = wakers.body_waker();
        let now = Timestamp::from_millis(1);
        wakers.wait_until(1, now, &waker);
        let timer = wakers.timer_waker();
        assert_eq!(wakers.first_wait_ends(), Some(now));
        assert!(!wakers.is_waiting_outside(&waker) && !wakers.can_be_woken(&waker, now));
        assert!(wakers.can_be_woken(&waker, Timestamp::from_millis(0)), "time goes by");
        timer.wake();
        assert!(wakers.take_body_woken() && !wakers.take_body_woken());
        assert!(lock(&wakers.waiting).is_empty());
    }

    #[test]
    fn a_probe_finds_the_steps_and_waits_that_are_still_polled() {
        let wakers = Wakers::default();
        let waker = wakers.body_waker();
        wakers.step_waits(1, &waker);
        wakers.wait_until(2, Timestamp::from_millis(1), &waker);
        assert!(wakers.has_polled_steps());
        wakers.probe_steps();
        assert!(wakers.take_body_woken() && !wakers.has_polled_steps());
        wakers.probe_waits();
        assert!(wakers.take_body_woken() && wakers.first_wait_ends().is_none());
    }
}
