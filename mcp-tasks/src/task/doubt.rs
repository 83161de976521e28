//! Writes whose outcome nobody told: the store did not answer in time, or the request that waited for it went away.

use std::sync::{Arc, Weak};
use std::time::Duration;

use mcp_tasks_core::{StoreError, TaskId, TaskRecord, Timestamp, WriteId, error_chain};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;

use super::write::REQUEST_PATIENCE;
use super::{Engine, Inner};

/// How often it is looked in the time of a lease: a write may arrive late, and has to be met before another node takes the
/// task for abandoned.
const LOOKS: u32 = 10;

/// The longest pause between two looks once the lease is over, while the store stays out of reach.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How many writes are followed up at a time. Each costs some hundred bytes and an operation in a tenth of a lease, and a
/// store that is out of reach brings one with every call.
pub(crate) const MOST_FOLLOWED: usize = 4096;

/// What is done about a write that took effect unseen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// The record is removed. It was created under an id that nobody was told, and whoever called was told that it failed:
    /// run all the same, the work would be done twice.
    Remove,
    /// The execution that the write is to start is started.
    Start,
}

/// A write under way. Dropped before its outcome is [`known`](Self::known), it is followed up in the background.
#[derive(Debug)]
pub(crate) struct Doubt {
    inner: Weak<Inner>,
    id: TaskId,
    write: WriteId,
    lease_until: Timestamp,
    /// `None` once the outcome is known.
    remedy: Option<Remedy>,
}

impl Doubt {
    /// The write `write` on the task `id`, which claims it until `lease_until`.
    pub(crate) fn new(engine: &Engine, id: &TaskId, write: WriteId, lease_until: Timestamp, remedy: Remedy) -> Self {
        Self {
            inner: Arc::downgrade(&engine.inner),
            id: id.clone(),
            write,
            lease_until,
            remedy: Some(remedy),
        }
    }

    /// The creation of `record`.
    pub(crate) fn of(engine: &Engine, record: &TaskRecord, remedy: Remedy) -> Option<Self> {
        let until = match record.execution.idle {
            None => record.execution.lease_until.unwrap_or(record.created_at),
            Some(_) => record.created_at.saturating_add(engine.inner.settings.lease),
        };
        let write = record.last_write?;
        Some(Self::new(engine, &record.task_id, write, until, remedy))
    }

    /// There is nothing to follow up.
    pub(crate) fn known(mut self) {
        self.remedy = None;
    }
}

impl Drop for Doubt {
    fn drop(&mut self) {
        let Some(remedy) = self.remedy.take() else { return };
        // Without a runtime the process is about to end.
        let Ok(runtime) = Handle::try_current() else { return };
        let Some(inner) = self.inner.upgrade() else { return };
        let Ok(followed) = inner.doubts.clone().try_acquire_owned() else {
            tracing::warn!(
                task_id = %self.id,
                "too many writes to the task store are in doubt; whether this one took effect is not looked at"
            );
            return;
        };
        let write = Unseen {
            inner: self.inner.clone(),
            id: self.id.clone(),
            write: self.write,
            lease_until: self.lease_until,
            _followed: followed,
        };
        match remedy {
            Remedy::Remove => drop(runtime.spawn(write.remove())),
            Remedy::Start => drop(runtime.spawn(write.start())),
        }
    }
}

/// A write that may have taken effect, or may yet.
struct Unseen {
    inner: Weak<Inner>,
    id: TaskId,
    write: WriteId,
    lease_until: Timestamp,
    _followed: OwnedSemaphorePermit,
}

impl Unseen {
    fn engine(&self) -> Option<Engine> {
        self.inner.upgrade().map(|inner| Engine { inner })
    }

    /// Removes the record until the lease is over, as the creation may arrive late, and after that until it has gone well
    /// once.
    async fn remove(self) {
        let Some(mut pause) = self.engine().map(|engine| engine.inner.settings.lease / LOOKS) else {
            return;
        };
        loop {
            {
                let Some(engine) = self.engine() else { return };
                let removal = tokio::time::timeout(REQUEST_PATIENCE, engine.inner.store.delete(&self.id));
                let removed = removal.await.unwrap_or_else(|_| {
                    let reason = "it did not answer in time".to_owned();
                    Err(StoreError::Unavailable { reason, source: None })
                });
                let is_over = engine.now() > self.lease_until;
                match removed {
                    Ok(()) if is_over => return,
                    Ok(()) => {}
                    Err(error) if is_over && !error.is_retryable() => return,
                    Err(error) => {
                        tracing::debug!(
                            task_id = %self.id,
                            error = %error_chain(&error),
                            "a task whose creation is in doubt could not be removed; trying again later"
                        );
                    }
                }
                if is_over {
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Starts the execution as soon as the write is seen, for as long as its lease lasts.
    async fn start(self) {
        loop {
            let pause = {
                let Some(engine) = self.engine() else { return };
                match engine.read(&self.id).await {
                    Ok(Some(record)) if self.starts(&engine, &record) => {
                        tracing::info!(
                            task_id = %self.id,
                            "a write was acknowledged late; the execution that it starts is started"
                        );
                        engine.spawn_execution(record, None, None);
                        return;
                    }
                    Ok(_) => {}
                    Err(error) => {
                        tracing::debug!(
                            task_id = %self.id,
                            error = %error_chain(&error),
                            "whether an execution is to start cannot be told now; trying again later"
                        );
                    }
                }
                if engine.now() > self.lease_until {
                    // What is there after all is abandoned, and taken over as such.
                    return;
                }
                engine.inner.settings.lease / LOOKS
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Whether `record` is as the write left it, so that nobody has begun the execution yet.
    fn starts(&self, engine: &Engine, record: &TaskRecord) -> bool {
        record.last_write == Some(self.write)
            && record.is_owned_by(record.execution.epoch)
            && record.execution.lease_until.is_some()
            && !record.is_abandoned(engine.now())
    }
}

#[cfg(test)]
mod tests;
