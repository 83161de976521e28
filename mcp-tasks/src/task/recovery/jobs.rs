//! What looks for tasks to take on, and what claims those that wait for it.

use std::sync::Arc;
use std::time::Duration;

use mcp_tasks_core::{TaskId, error_chain};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Recovery;
use crate::task::admission::Slot;
use crate::task::background::{Job, Runner};
use crate::task::wake_queue::WakeQueue;
use crate::tool::registry::Placement;

/// How many claims are made at once: enough that thousands of tasks whose time comes at one instant are soon up, few enough
/// that the store serves others besides.
const CLAIMED_AT_ONCE: usize = 16;

/// How often a store that tells of nothing is looked at for tasks that any node may take on: soon enough that people do not
/// wait for it, and a query of an index that finds nothing costs a store that is near less than a millisecond.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The shortest pause between two looks for abandoned tasks, however much there is to be found: a look may read a hundred
/// records.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

/// After how long a task is tried again that could not be claimed, as the store could not be reached.
const RETRY: Duration = Duration::from_secs(1);

/// Claims what waits to be claimed, as far as this node has slots.
pub(crate) struct ClaimQueuedTasks {
    recovery: Arc<Recovery>,
    wake_queue: Arc<WakeQueue>,
    runner: Runner,
    at_once: Arc<Semaphore>,
    next: Option<(TaskId, Slot, OwnedSemaphorePermit)>,
}

impl ClaimQueuedTasks {
    pub(crate) fn new(recovery: Arc<Recovery>, wake_queue: Arc<WakeQueue>, runner: Runner) -> Self {
        Self {
            recovery,
            wake_queue,
            runner,
            at_once: Arc::new(Semaphore::new(CLAIMED_AT_ONCE)),
            next: None,
        }
    }
}

impl Job for ClaimQueuedTasks {
    async fn wait(&mut self) {
        let id = self.recovery.claims.next().await;
        let slot = self.recovery.admission.slots.next_free().await;
        // The semaphore is never closed.
        self.next = self
            .at_once
            .clone()
            .acquire_owned()
            .await
            .ok()
            .map(|permit| (id, slot, permit));
    }

    async fn work(&mut self) {
        let Some((id, slot, permit)) = self.next.take() else {
            return;
        };
        let (recovery, wake_queue) = (self.recovery.clone(), self.wake_queue.clone());
        self.runner.run_once(async move {
            if let Err(error) = recovery.claim_idle(&id, slot).await {
                tracing::warn!(task_id = %id, error = %error_chain(&error), "a task could not be taken on");
                if error.is_retryable() {
                    wake_queue.wake_at(recovery.records.now().saturating_add(RETRY), &id);
                }
            }
            drop(permit);
        });
    }
}

/// Looks for tasks that no node runs, at start-up and then again and again.
pub(crate) struct LookForAbandoned {
    recovery: Arc<Recovery>,
    interval: Duration,
    /// How many the last look left to other nodes; `None` before the first.
    left: Option<usize>,
}

impl LookForAbandoned {
    pub(crate) fn new(recovery: Arc<Recovery>) -> Self {
        let interval = interval(&recovery);
        Self {
            recovery,
            interval,
            left: None,
        }
    }
}

/// How often the store is looked at.
fn interval(recovery: &Recovery) -> Duration {
    let lease = recovery.records.lease();
    let is_told = recovery.records.store().as_change_feed().is_some();
    let mut tools = recovery.registry.iter();
    if !is_told && recovery.worker.is_enabled() && tools.any(|tool| tool.placement == Placement::Any) {
        return lease.min(LOOK_INTERVAL);
    }
    lease
}

impl Job for LookForAbandoned {
    async fn wait(&mut self) {
        if self.left.is_none() {
            return;
        }
        let requested = async {
            tokio::time::sleep(SHORTEST_PAUSE).await;
            self.recovery.claims.look_requested().await;
        };
        tokio::select! {
            () = tokio::time::sleep(self.interval) => {}
            () = requested => {}
        }
    }

    async fn work(&mut self) {
        self.left = Some(self.recovery.recover_abandoned(self.left.unwrap_or(0)).await);
    }
}
