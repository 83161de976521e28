//! The executions of tasks on this node, and the end of all of them when it stops.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_tasks_core::{TaskId, TaskRecord};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::lock;

/// How long a node that stops waits for the store to take its leases back: long enough for a write, short enough that a store
/// which is out of reach does not keep the process.
pub(crate) const RELEASE_PATIENCE: Duration = Duration::from_secs(1);

/// What runs here, at most one execution of a task.
#[derive(Debug, Default)]
pub(crate) struct Executions {
    state: Mutex<State>,
    /// Fires when the node stops: no new execution starts.
    closing: CancellationToken,
    /// Fires when what still runs is to end: the parent of every execution's token.
    stopping: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    running: HashMap<TaskId, Running>,
    /// Tasks with a write under way that may start an execution.
    starting: HashMap<TaskId, Starting>,
}

#[derive(Debug)]
struct Running {
    epoch: u64,
    token: CancellationToken,
    /// The newest version of the record that this node wrote.
    written: u64,
    changed: Arc<Notify>,
}

/// What was told of a task while a write that may start its execution is under way: the execution is registered when the
/// write is acknowledged, and a cancellation may have come and gone by then.
#[derive(Debug, Default)]
struct Starting {
    /// How many such writes.
    writes: usize,
    is_cancelled: bool,
    /// The newest version of the record that the store told of.
    version: u64,
}

/// A write under way that may start an execution of a task, until this is dropped.
#[derive(Debug)]
pub(crate) struct PendingStart {
    executions: Arc<Executions>,
    id: TaskId,
}

impl Drop for PendingStart {
    fn drop(&mut self) {
        let mut state = lock(&self.executions.state);
        if let Some(starting) = state.starting.get_mut(&self.id) {
            starting.writes -= 1;
            if starting.writes == 0 {
                state.starting.remove(&self.id);
            }
        }
    }
}

/// An execution that is registered here, until this is dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    executions: Arc<Executions>,
    id: TaskId,
    epoch: u64,
    /// Fires when the execution is to end: the task is cancelled, a later execution has begun, or the node stops.
    pub(crate) token: CancellationToken,
    /// Notified when another node has written the record.
    pub(crate) changed: Arc<Notify>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let running = &mut lock(&self.executions.state).running;
        // The task's next execution may be registered already.
        if running.get(&self.id).is_some_and(|running| running.epoch == self.epoch) {
            running.remove(&self.id);
        }
    }
}

impl Executions {
    /// A write that may start an execution of the task is about to be sent. What is told of the task until the execution is
    /// registered reaches it then, if this is held so long.
    pub(crate) fn pending_start(self: &Arc<Self>, id: &TaskId) -> PendingStart {
        lock(&self.state).starting.entry(id.clone()).or_default().writes += 1;
        PendingStart {
            executions: self.clone(),
            id: id.clone(),
        }
    }

    /// Registers the execution that `record` names. An earlier one of the same task is stopped: what it still does does not
    /// count.
    pub(crate) fn register(self: &Arc<Self>, record: &TaskRecord) -> Registration {
        let (id, epoch) = (record.task_id.clone(), record.execution.epoch);
        let (token, changed) = (self.stopping.child_token(), Arc::<Notify>::default());
        let running = Running {
            epoch,
            token: token.clone(),
            written: record.version,
            changed: changed.clone(),
        };
        let mut state = lock(&self.state);
        if let Some(starting) = state.starting.get(&id) {
            if starting.is_cancelled {
                token.cancel();
            }
            if starting.version > record.version {
                changed.notify_one();
            }
        }
        let before = state.running.insert(id.clone(), running);
        drop(state);
        if let Some(before) = before.filter(|before| before.epoch < epoch) {
            before.token.cancel();
        }
        Registration {
            executions: self.clone(),
            id,
            epoch,
            token,
            changed,
        }
    }

    /// Whether this execution of the task is registered here, or a later one.
    pub(crate) fn has_reached(&self, id: &TaskId, epoch: u64) -> bool {
        let state = lock(&self.state);
        state.running.get(id).is_some_and(|running| running.epoch >= epoch)
    }

    /// The task is cancelled: its execution stops, and one that is about to start does not.
    pub(crate) fn cancel(&self, id: &TaskId) {
        let mut state = lock(&self.state);
        if let Some(starting) = state.starting.get_mut(id) {
            starting.is_cancelled = true;
        }
        if let Some(running) = state.running.get(id) {
            running.token.cancel();
        }
    }

    /// This node has written the record.
    pub(crate) fn record_written(&self, record: &TaskRecord) {
        if let Some(running) = lock(&self.state).running.get_mut(&record.task_id) {
            running.written = running.written.max(record.version);
        }
    }

    /// The store tells that the record was written, and is of this version now, if that is known.
    pub(crate) fn record_changed(&self, id: &TaskId, version: Option<u64>) {
        let mut state = lock(&self.state);
        if let Some(starting) = state.starting.get_mut(id) {
            starting.version = starting.version.max(version.unwrap_or(u64::MAX));
        }
        if let Some(running) = state.running.get(id)
            && version.is_none_or(|version| version > running.written)
        {
            running.changed.notify_one();
        }
    }

    /// Fires when the node stops.
    pub(crate) const fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    /// Whether the node stops, and takes on no more executions.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.is_cancelled()
    }

    /// Whether what still runs is to end, as the node stops.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    /// Takes on no more executions.
    pub(crate) fn close(&self) {
        self.closing.cancel();
    }

    /// Stops taking on executions and waits, at most for `patience`, for those that run. Those that are left then, which
    /// are counted in the answer, are stopped: their tokens fire, so that blocking work ends too and does not keep the
    /// process, and each gives its lease back, so that another node need not wait for its end. That is waited for too, but
    /// not for long.
    pub(crate) async fn drain(&self, patience: Duration) -> usize {
        self.closing.cancel();
        let left = self.wait_until_empty(patience).await;
        self.stopping.cancel();
        if left > 0 {
            self.wait_until_empty(RELEASE_PATIENCE).await;
        }
        left
    }

    /// Waits, at most for `patience`, until no execution runs here. Returns how many still do.
    async fn wait_until_empty(&self, patience: Duration) -> usize {
        // Often enough that a stop is not felt to wait, and rare enough to cost nothing.
        const INTERVAL: Duration = Duration::from_millis(20);
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            let left = lock(&self.state).running.len();
            if left == 0 || tokio::time::Instant::now() >= deadline {
                return left;
            }
            tracing::trace!(left, "waiting for executions");
            tokio::time::sleep(INTERVAL).await;
        }
    }
}

#[cfg(test)]
mod tests;
