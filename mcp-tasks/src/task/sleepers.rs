//! Tasks that sleep: their runs are put away, and taken up again when it is time.
//!
//! The record says when that is, and whichever node comes by from then on takes the task on: see
//! [`claim`](super::claim). The node that put it away keeps a note besides, so that it wakes in time while that node
//! lives.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_tasks_core::{Ledger, StoreError, TaskId, TaskRecord, Timestamp};
use tokio::sync::Notify;

use super::execution::given_up;
use super::{Engine, lock};
use crate::run::progress::ProgressUpdate;

/// The longest wait between two looks at the clock. It may have jumped ahead meanwhile: timers do not go on while a machine
/// is suspended, and the clock does.
const LOOK: Duration = Duration::from_secs(60);

/// After how long a task is tried again that could not be claimed, as the store could not be reached.
pub(crate) const RETRY: Duration = Duration::from_secs(1);

/// When this node has to wake which tasks. A note for a task that has ended meanwhile, or that another node has woken, is
/// found out when its time has come.
#[derive(Debug, Default)]
pub(crate) struct Sleepers {
    notes: Mutex<BinaryHeap<Reverse<(Timestamp, TaskId)>>>,
    /// Something is to be done sooner than before.
    sooner: Notify,
}

impl Sleepers {
    /// The task is to be woken at `wake`.
    pub(crate) fn note(&self, wake: Timestamp, id: &TaskId) {
        let mut notes = lock(&self.notes);
        let is_first = notes.peek().is_none_or(|Reverse((first, _))| wake < *first);
        notes.push(Reverse((wake, id.clone())));
        drop(notes);
        if is_first {
            self.sooner.notify_one();
        }
    }

    fn first(&self) -> Option<Timestamp> {
        lock(&self.notes).peek().map(|Reverse((first, _))| *first)
    }

    /// Takes those whose time has come.
    fn take_due(&self, now: Timestamp) -> Vec<TaskId> {
        let mut notes = lock(&self.notes);
        let mut due = Vec::new();
        while notes.peek().is_some_and(|Reverse((first, _))| *first <= now) {
            due.extend(notes.pop().map(|Reverse((_, id))| id));
        }
        // What thousands took that slept until one instant is not kept for ever.
        if notes.len() < notes.capacity() / 4 {
            notes.shrink_to_fit();
        }
        due
    }
}

impl Engine {
    /// Puts the task away until `wake`.
    pub(crate) async fn put_to_sleep(
        &self,
        record: &TaskRecord,
        ledger: Ledger,
        wake: Timestamp,
        report: Option<ProgressUpdate>,
    ) {
        let (now, epoch) = (self.now(), record.execution.epoch);
        let report = report.as_ref().map(ProgressUpdate::to_report);
        let mutation = move |r: &TaskRecord| r.slept(epoch, now, wake, &ledger, report.as_ref());
        match self.persist(record, mutation).await {
            Ok(Some(updated)) if updated.applied => {
                tracing::info!(until = %wake, "task sleeps");
                // One that expires before needs nobody.
                if updated.record.deadline().is_none_or(|deadline| wake <= deadline) {
                    self.inner.sleepers.note(wake, &record.task_id);
                }
            }
            // Cancelled, expired or taken over while it ran.
            Ok(_) => {}
            Err(error @ StoreError::Refused { .. }) => self.fail_unkept(record, &error).await,
            Err(error) => given_up(&error),
        }
    }

    /// Wakes the tasks that this node put to sleep, with one timer for all of them.
    pub(crate) fn start_waking(&self) {
        let inner = Arc::downgrade(&self.inner);
        let sleepers = self.inner.sleepers.clone();
        let clock = self.inner.clock.clone();
        let (closing, gone) = (self.inner.closing.clone(), self.inner.gone.clone());
        tokio::spawn(async move {
            loop {
                let first = sleepers.first();
                let time_has_come = async {
                    match first {
                        Some(at) => clock.timer(at.min(clock.now().saturating_add(LOOK))).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    () = closing.cancelled() => return,
                    () = gone.cancelled() => return,
                    () = sleepers.sooner.notified() => continue,
                    () = time_has_come => {}
                }
                let Some(inner) = inner.upgrade() else { return };
                let engine = Self { inner };
                for id in sleepers.take_due(engine.now()) {
                    engine.may_claim(&id);
                }
            }
        });
    }
}
