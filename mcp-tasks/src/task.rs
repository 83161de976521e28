//! Runs tools, as tasks and inside calls.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use mcp_tasks_core::{Claim, ClientCapabilities, StoreError, TaskId, TaskStore, WriteId, error_chain};
use rmcp::ErrorData;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::config::settings::Settings;
use crate::run::clock::Clock;
use crate::tool::registry::Registry;
use crate::tool::state::StateMap;

mod birth;
mod claim;
mod doubt;
pub(crate) mod execution;
mod lease;
#[cfg_attr(
    not(any(feature = "http", feature = "stdio")),
    allow(dead_code, reason = "without a transport of ours nobody listens")
)]
mod listen;
mod places;
mod quota;
mod record_sink;
pub(crate) mod request;
mod single_use;
mod sleepers;
#[cfg_attr(
    not(any(feature = "http", feature = "stdio")),
    allow(dead_code, reason = "without a transport of ours nobody listens")
)]
mod watchers;
pub(crate) mod write;

pub(crate) use birth::Started;
#[cfg(any(feature = "http", feature = "stdio"))]
pub(crate) use listen::{ListenerEvent, TaskListener};
pub(crate) use request::NewTask;

use claim::Claims;
use lease::RELEASE_PATIENCE;
use places::Places;
use quota::Quota;
use sleepers::Sleepers;
use watchers::Watchers;

/// Everything that runs tools on this node; cloning shares it.
#[derive(Clone)]
pub(crate) struct Engine {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn TaskStore>,
    pub(crate) registry: Registry,
    pub(crate) states: Arc<StateMap>,
    pub(crate) settings: Settings,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) node: Arc<str>,
    pub(crate) write_seed: u128,
    pub(crate) writes: AtomicU64,
    pub(crate) running: Mutex<HashMap<TaskId, Running>>,
    pub(crate) watchers: Arc<Watchers>,
    pub(crate) quota: Quota,
    pub(crate) places: Places,
    /// One permit for each write whose outcome is looked for.
    pub(crate) doubts: Arc<Semaphore>,
    pub(crate) sleepers: Arc<Sleepers>,
    pub(crate) claims: Arc<Claims>,
    pub(crate) capabilities: Mutex<Vec<ClientCapabilities>>,
    /// Whether what goes on beside requests has been started.
    pub(crate) background: AtomicBool,
    /// Fires when the node stops: no new execution starts.
    pub(crate) closing: CancellationToken,
    /// Fires when what still runs is to end: the parent of every execution's token.
    pub(crate) stopping: CancellationToken,
    /// Fires when nobody holds the engine any more.
    pub(crate) gone: CancellationToken,
    pub(crate) _fires_gone: DropGuard,
}

/// An execution on this node.
pub(crate) struct Running {
    epoch: u64,
    token: CancellationToken,
    /// The newest version of the record that this node wrote.
    written: u64,
    /// Tells the execution that somebody else has written the record.
    changed: Arc<Notify>,
}

impl Running {
    /// The record was written, and is of this version now, if that is known.
    fn hear_of(&self, version: Option<u64>) {
        if version.is_none_or(|version| version > self.written) {
            self.changed.notify_one();
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("node", &self.inner.node)
            .field("store", &self.inner.store)
            .finish_non_exhaustive()
    }
}

/// How many different sets of client capabilities are kept to be shared between records: clients of one kind declare
/// the same, and a deployment has a handful of kinds.
const SHARED_CAPABILITIES: usize = 32;

/// After how long a sweep is given up: far more than one takes, so that only one that never comes back is met. What expires
/// later would not be removed otherwise.
const LONGEST_SWEEP: Duration = Duration::from_secs(600);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engine {
    pub(crate) fn new(
        store: Arc<dyn TaskStore>,
        registry: Registry,
        states: Arc<StateMap>,
        settings: Settings,
        clock: Arc<dyn Clock>,
        seed: u128,
    ) -> Self {
        let quota = Quota::new(settings.quota_open_per_principal);
        let places = Places::new(settings.quota_running);
        let gone = CancellationToken::new();
        Self {
            inner: Arc::new(Inner {
                store,
                registry,
                states,
                settings,
                clock,
                node: format!("{:016x}", seed >> 64).into(),
                write_seed: seed,
                writes: AtomicU64::new(0),
                running: Mutex::default(),
                watchers: Arc::default(),
                quota,
                places,
                doubts: Arc::new(Semaphore::new(doubt::MOST_FOLLOWED)),
                sleepers: Arc::default(),
                claims: Arc::default(),
                capabilities: Mutex::default(),
                background: AtomicBool::new(false),
                closing: CancellationToken::new(),
                stopping: CancellationToken::new(),
                _fires_gone: gone.clone().drop_guard(),
                gone,
            }),
        }
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    pub(crate) fn now(&self) -> mcp_tasks_core::Timestamp {
        self.inner.clock.now()
    }

    /// A write id that no other write of any node has: the node's random number plus a count.
    pub(crate) fn write_id(&self) -> WriteId {
        let count = self.inner.writes.fetch_add(1, Ordering::Relaxed);
        WriteId::new(self.inner.write_seed.wrapping_add(u128::from(count)))
    }

    fn claim(&self) -> Claim {
        let until = self.now().saturating_add(self.inner.settings.lease);
        Claim::new(self.inner.node.clone(), until)
    }

    /// The capabilities, shared with other records that declare the same.
    fn share(&self, declared: ClientCapabilities) -> ClientCapabilities {
        let mut shared = lock(&self.inner.capabilities);
        if let Some(known) = shared.iter().find(|known| **known == declared) {
            return known.clone();
        }
        if shared.len() >= SHARED_CAPABILITIES {
            shared.remove(0);
        }
        shared.push(declared.clone());
        declared
    }

    /// Starts the sweep of what has expired.
    fn start_sweeping(&self) {
        if self.inner.store.as_sweep().is_none() {
            return;
        }
        let inner: Weak<Inner> = Arc::downgrade(&self.inner);
        let interval = self.inner.settings.sweep_interval;
        let closing = self.inner.closing.clone();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = closing.cancelled() => return,
                    () = tokio::time::sleep(interval) => {}
                }
                let Some(inner) = inner.upgrade() else { return };
                let Some(sweep) = inner.store.as_sweep() else { return };
                let now = inner.clock.now();
                inner.quota.forget_expired(now);
                let swept = tokio::time::timeout(LONGEST_SWEEP, sweep.sweep(now));
                let Ok(swept) = swept.await else {
                    tracing::warn!("removing expired tasks took too long and was given up; trying again later");
                    continue;
                };
                match swept {
                    Ok(0) => {}
                    Ok(removed) => tracing::info!(removed, "removed expired tasks"),
                    Err(error) => {
                        tracing::warn!(error = %error_chain(&error), "could not remove expired tasks; trying again later");
                    }
                }
            }
        });
    }

    /// Takes on no more executions.
    pub(crate) fn close(&self) {
        self.inner.closing.cancel();
    }

    /// Stops taking on executions and waits, at most for `patience`, for those that run. Those that are left then, which
    /// are counted in the answer, are stopped: their tokens fire, so that blocking work ends too and does not keep the
    /// process, and each gives its lease back, so that another node need not wait for its end. That is waited for too, but
    /// not for long.
    pub(crate) async fn drain(&self, patience: Duration) -> usize {
        self.inner.closing.cancel();
        let left = self.emptied(patience).await;
        self.inner.stopping.cancel();
        if left > 0 {
            self.emptied(RELEASE_PATIENCE).await;
        }
        left
    }

    /// Waits, at most for `patience`, until nothing runs here. Returns how many executions still do.
    async fn emptied(&self, patience: Duration) -> usize {
        // Often enough that a stop is not felt to wait, and rare enough to cost nothing.
        const LOOK: Duration = Duration::from_millis(20);
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            let left = lock(&self.inner.running).len();
            if left == 0 || tokio::time::Instant::now() >= deadline {
                return left;
            }
            tracing::trace!(left, "waiting for executions");
            tokio::time::sleep(LOOK).await;
        }
    }

    pub(crate) async fn extend_ttl(&self, id: &TaskId, epoch: u64, ttl: Duration) -> Result<(), crate::ToolError> {
        let now = self.now();
        let updated = self
            .write(id, self.inner.settings.lease, move |record| {
                let Some(old) = record.ttl_ms else {
                    return mcp_tasks_core::Change::Keep;
                };
                let elapsed = now.saturating_since(record.created_at);
                let extended = elapsed.saturating_add(ttl).min(mcp_tasks_core::duration::MAX_DURATION);
                record.extended(epoch, now, Some(extended.max(Duration::from_millis(old))))
            })
            .await
            .map_err(|error| crate::ToolError::protocol(store_failed(&error)))?;
        match updated {
            Some(updated) if updated.record.is_owned_by(epoch) => {
                self.inner.quota.see(&updated.record);
                Ok(())
            }
            _ => Err(crate::ToolError::new("the task is no longer this run's")),
        }
    }
}

/// `-32603` for a store that cannot be used; the detail goes into the log.
pub(crate) fn store_failed(error: &StoreError) -> ErrorData {
    tracing::error!(error = %error_chain(error), "the task store failed");
    let advice = if error.is_retryable() {
        "try again"
    } else {
        "see the server's log"
    };
    ErrorData::internal_error(format!("the task store failed; {advice}"), None)
}
