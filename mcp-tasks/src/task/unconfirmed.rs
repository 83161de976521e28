//! Writes whose outcome is not known: the store did not answer in time, or the request that waited for it was dropped.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcp_tasks_core::{TaskId, TaskRecord, Timestamp, WriteId, error_chain};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::background::Runner;
use super::records::TaskRecords;

/// How often the store is asked in the time of a lease: a write may arrive late, and has to be found before another node
/// takes the task for abandoned.
const ATTEMPTS_PER_LEASE: u32 = 10;

/// The longest pause between two attempts once the lease is over, while the store stays out of reach.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How many writes are followed up at a time. Each costs some hundred bytes and an operation in a tenth of a lease, and a
/// store that is out of reach brings one with every call.
const MOST_FOLLOWED: usize = 4096;

/// What is done once an unconfirmed write turns out to have taken effect.
pub(crate) enum OnEffect {
    /// The record is removed. It was created under an id that no client was told, and the caller was told that the call
    /// failed: run all the same, the work would be done twice.
    Remove,
    /// The execution that the write is to start is started, from the record.
    Start(Box<dyn FnOnce(Arc<TaskRecord>) + Send + Sync>),
}

impl fmt::Debug for OnEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Remove => "Remove",
            Self::Start(_) => "Start",
        })
    }
}

/// Follows up unconfirmed writes in the background.
#[derive(Debug)]
pub(crate) struct Reconciler {
    records: Arc<TaskRecords>,
    runner: Runner,
    /// One permit for each write that is followed up.
    followed: Arc<Semaphore>,
}

/// A write under way. Dropped before its outcome is [known](Self::outcome_known), it is followed up.
#[derive(Debug)]
pub(crate) struct UnconfirmedWrite {
    reconciler: Arc<Reconciler>,
    write: Write,
    /// `None` once the outcome is known.
    on_effect: Option<OnEffect>,
}

#[derive(Debug, Clone)]
struct Write {
    task: TaskId,
    id: WriteId,
    /// Until when it claims the task.
    lease_until: Timestamp,
}

impl UnconfirmedWrite {
    /// There is nothing to follow up.
    pub(crate) fn outcome_known(mut self) {
        self.on_effect = None;
    }
}

impl Drop for UnconfirmedWrite {
    fn drop(&mut self) {
        let Some(on_effect) = self.on_effect.take() else {
            return;
        };
        // Without a runtime the process is about to end.
        if Handle::try_current().is_ok() {
            self.reconciler.follow_up(self.write.clone(), on_effect);
        }
    }
}

impl Reconciler {
    pub(crate) fn new(records: Arc<TaskRecords>, runner: Runner) -> Self {
        Self {
            records,
            runner,
            followed: Arc::new(Semaphore::new(MOST_FOLLOWED)),
        }
    }

    /// The write `id` on `task`, which claims it until `lease_until`, is about to be sent.
    pub(crate) fn track(
        self: &Arc<Self>,
        task: &TaskId,
        id: WriteId,
        lease_until: Timestamp,
        on_effect: OnEffect,
    ) -> UnconfirmedWrite {
        let task = task.clone();
        UnconfirmedWrite {
            reconciler: self.clone(),
            write: Write { task, id, lease_until },
            on_effect: Some(on_effect),
        }
    }

    /// `record` is about to be created.
    pub(crate) fn track_creation(
        self: &Arc<Self>,
        record: &TaskRecord,
        on_effect: OnEffect,
    ) -> Option<UnconfirmedWrite> {
        let until = match record.execution.idle {
            None => record.execution.lease_until.unwrap_or(record.created_at),
            Some(_) => record.created_at.saturating_add(self.records.lease()),
        };
        Some(self.track(&record.task_id, record.last_write?, until, on_effect))
    }

    fn follow_up(&self, write: Write, on_effect: OnEffect) {
        let Ok(followed) = self.followed.clone().try_acquire_owned() else {
            tracing::warn!(
                task_id = %write.task,
                "too many writes to the task store are unconfirmed; whether this one took effect is not looked at"
            );
            return;
        };
        let follow_up = FollowUp {
            records: self.records.clone(),
            write,
            _followed: followed,
        };
        match on_effect {
            OnEffect::Remove => self.runner.run_once(follow_up.remove()),
            OnEffect::Start(start) => self.runner.run_once(follow_up.start(start)),
        }
    }
}

/// A write that may have taken effect, or may yet.
struct FollowUp {
    records: Arc<TaskRecords>,
    write: Write,
    _followed: OwnedSemaphorePermit,
}

impl FollowUp {
    /// Removes the record until the lease is over, as the creation may arrive late, and after that until it has gone well
    /// once.
    async fn remove(self) {
        let mut pause = self.records.lease() / ATTEMPTS_PER_LEASE;
        loop {
            let removed = self.records.delete(&self.write.task).await;
            let is_over = self.is_over();
            match removed {
                Ok(()) if is_over => return,
                Ok(()) => {}
                Err(error) if is_over && !error.is_retryable() => return,
                Err(error) => {
                    tracing::debug!(
                        task_id = %self.write.task,
                        error = %error_chain(&error),
                        "a task whose creation is unconfirmed could not be removed; trying again later"
                    );
                }
            }
            if is_over {
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Starts the execution as soon as the write is found, for as long as its lease lasts.
    async fn start(self, start: Box<dyn FnOnce(Arc<TaskRecord>) + Send + Sync>) {
        loop {
            match self.records.read(&self.write.task).await {
                Ok(Some(record)) if self.is_unstarted(&record) => {
                    tracing::info!(
                        task_id = %self.write.task,
                        "a write was acknowledged late; the execution that it starts is started"
                    );
                    return start(record);
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(
                        task_id = %self.write.task,
                        error = %error_chain(&error),
                        "whether an execution is to start cannot be told now; trying again later"
                    );
                }
            }
            if self.is_over() {
                // What is there after all is abandoned, and taken over as such.
                return;
            }
            tokio::time::sleep(self.records.lease() / ATTEMPTS_PER_LEASE).await;
        }
    }

    fn is_over(&self) -> bool {
        self.records.now() > self.write.lease_until
    }

    /// Whether `record` is as the write left it, so that its execution has not begun yet.
    fn is_unstarted(&self, record: &TaskRecord) -> bool {
        record.last_write == Some(self.write.id)
            && record.is_owned_by(record.execution.epoch)
            && record.execution.lease_until.is_some()
            && !record.is_abandoned(self.records.now())
    }
}

#[cfg(test)]
mod tests;
