//! When this node has to wake which tasks that sleep.
//!
//! The record says when that is, and any node takes the task on from then on: see [`recovery`](super::recovery). The node
//! that put it to sleep keeps an entry besides, so that the task wakes in time while that node lives.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_tasks_core::{TaskId, Timestamp};
use tokio::sync::Notify;

use super::background::Job;
use super::claim_queue::ClaimQueue;
use super::lock;
use crate::run::clock::Clock;

/// The longest wait between two looks at the clock. It may have jumped ahead meanwhile: timers do not go on while a machine
/// is suspended, and the clock does.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Tasks by the time at which they are to be woken. An entry for a task that has ended meanwhile, or that another node has
/// woken, is found out when its time has come.
#[derive(Debug, Default)]
pub(crate) struct WakeQueue {
    entries: Mutex<BinaryHeap<Reverse<(Timestamp, TaskId)>>>,
    /// Something is to be done sooner than before.
    sooner: Notify,
}

impl WakeQueue {
    /// The task is to be woken at `wake`.
    pub(crate) fn wake_at(&self, wake: Timestamp, id: &TaskId) {
        let mut entries = lock(&self.entries);
        let is_first = entries.peek().is_none_or(|Reverse((first, _))| wake < *first);
        entries.push(Reverse((wake, id.clone())));
        drop(entries);
        if is_first {
            self.sooner.notify_one();
        }
    }

    /// Waits on `clock` until there may be something due.
    async fn wait(&self, clock: &dyn Clock) {
        let first = lock(&self.entries).peek().map(|Reverse((first, _))| *first);
        let due = async {
            match first {
                Some(at) => clock.timer(at.min(clock.now().saturating_add(LONGEST_WAIT))).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.sooner.notified() => {}
            () = due => {}
        }
    }

    /// Takes the tasks whose time has come.
    fn take_due(&self, now: Timestamp) -> Vec<TaskId> {
        let mut entries = lock(&self.entries);
        let mut due = Vec::new();
        while entries.peek().is_some_and(|Reverse((first, _))| *first <= now) {
            due.extend(entries.pop().map(|Reverse((_, id))| id));
        }
        // The room of thousands that slept until one instant is not kept for ever.
        if entries.len() < entries.capacity() / 4 {
            entries.shrink_to_fit();
        }
        due
    }
}

/// Hands tasks over to be claimed when their time has come, with one timer for all of them.
pub(crate) struct WakeDueTasks {
    pub(crate) queue: Arc<WakeQueue>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) claims: Arc<ClaimQueue>,
}

impl Job for WakeDueTasks {
    async fn wait(&mut self) {
        self.queue.wait(&*self.clock).await;
    }

    async fn work(&mut self) {
        for id in self.queue.take_due(self.clock.now()) {
            self.claims.push(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::clock::TokioClock;

    #[tokio::test(start_paused = true)]
    async fn tasks_are_woken_in_the_order_of_their_times() {
        let (queue, clock) = (Arc::new(WakeQueue::default()), Arc::new(TokioClock::new()));
        let claims = Arc::new(ClaimQueue::new(true, true));
        let mut job = WakeDueTasks {
            queue: queue.clone(),
            clock: clock.clone(),
            claims: claims.clone(),
        };
        let start = clock.now();
        let after = |seconds| start.saturating_add(Duration::from_secs(seconds));
        let (early, late) = (TaskId::new("early"), TaskId::new("late"));
        queue.wake_at(after(200), &late);
        let woken = async {
            loop {
                job.wait().await;
                job.work().await;
            }
        };
        let watched = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            queue.wake_at(after(10), &early);
            assert_eq!((claims.next().await, clock.now()), (early, after(10)));
            assert_eq!((claims.next().await, clock.now()), (late, after(200)));
        };
        tokio::select! {
            () = woken => {}
            () = watched => {}
        }
    }
}
