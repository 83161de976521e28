//! Watching tasks for a client that listens.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use mcp_tasks_core::{StoreError, TaskId, TaskRecord, TaskStatus, Timestamp, error_chain};
use rmcp::ErrorData;

use super::watchers::Watch;
use super::{TaskEngine, store_failed};
use crate::Caller;

/// How many tasks one listener may watch: what a client can have on its screen, and some hundred kilobytes.
const MOST_WATCHED: usize = 1000;

/// Where the store does not tell of changes, a watched task is read as often as its tool says that clients should, but not
/// more often than this, as every listener would be a hot loop in the store,
const SHORTEST_INTERVAL: Duration = Duration::from_millis(250);
/// and not less often than this, as listening should not be worse than polling.
const LONGEST_INTERVAL: Duration = Duration::from_secs(5);

/// After how long a task is read again that the store could not show, or that no node could take over.
const RETRY: Duration = Duration::from_secs(1);

/// What a listener tells its client.
#[derive(Debug)]
pub(crate) enum ListenerEvent {
    /// A task as it is now: read for the first time, or changed in something that a client can see.
    Changed(Arc<TaskRecord>),
    /// Nothing for as long as was asked.
    Idle,
    /// Nothing more: every task has ended or is gone, or the server stops.
    Ended,
}

/// Watches tasks for one caller. However slowly it is asked, it holds no more than which tasks to read: between two reads the
/// newest state counts, and the one that ends a task is always told.
#[derive(Debug)]
pub(crate) struct TaskListener {
    engine: TaskEngine,
    caller: Caller,
    watch: Watch,
    tasks: HashMap<TaskId, WatchedTask>,
    granted: Vec<TaskId>,
}

/// What was last read of a task.
#[derive(Debug, Default)]
struct WatchedTask {
    version: u64,
    /// Of what a client can see; `None` before the first read.
    visible: Option<u64>,
    /// When to read it again even if no change is told.
    read_again: Option<Timestamp>,
}

/// A hash of what `tasks/get` shows, but for what cannot change without the rest.
fn visible_hash(record: &TaskRecord) -> u64 {
    let mut hasher = DefaultHasher::new();
    record.status.as_str().hash(&mut hasher);
    record.status_message.hash(&mut hasher);
    record.last_updated_at.hash(&mut hasher);
    record.ttl_ms.hash(&mut hasher);
    record.poll_interval_ms.hash(&mut hasher);
    for asked in &record.open {
        asked.key.hash(&mut hasher);
    }
    hasher.finish()
}

impl TaskListener {
    /// The tasks that are watched: those that are there and the caller's, in the order in which they were asked for.
    pub(crate) fn granted(&self) -> &[TaskId] {
        &self.granted
    }

    /// The next event. `quiet` is how long there may be none.
    ///
    /// Not cancel safe: a listener whose `next` was dropped may have lost a change.
    pub(crate) async fn next(&mut self, quiet: Duration) -> ListenerEvent {
        let idle_at = tokio::time::Instant::now() + quiet;
        loop {
            while let Some(id) = self.watch.next_changed() {
                if let Some(record) = self.read_change(&id).await {
                    return ListenerEvent::Changed(record);
                }
            }
            if self.tasks.is_empty() || self.engine.executions.is_closing() {
                return ListenerEvent::Ended;
            }
            let read_again = self.tasks.values().filter_map(|task| task.read_again).min();
            let clock = self.engine.records.clock();
            let due = async {
                match read_again {
                    Some(at) => clock.timer(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.engine.executions.closing().cancelled() => {}
                () = self.watch.any_changed() => {}
                () = due => self.mark_due(),
                () = tokio::time::sleep_until(idle_at) => return ListenerEvent::Idle,
            }
        }
    }

    /// Marks the tasks that are due to be read again.
    fn mark_due(&mut self) {
        let now = self.engine.records.now();
        for (id, task) in &mut self.tasks {
            if task.read_again.is_some_and(|at| at <= now) {
                task.read_again = None;
                self.watch.mark_changed(id);
            }
        }
    }

    /// The task, if there is something new to see of it.
    async fn read_change(&mut self, id: &TaskId) -> Option<Arc<TaskRecord>> {
        let record = match self.engine.find(id, self.caller.principal()).await {
            Ok(Some(record)) => record,
            Ok(None) => {
                self.forget(id);
                return None;
            }
            Err(error @ StoreError::Unreadable { .. }) => {
                log_left_out(&error);
                self.forget(id);
                return None;
            }
            Err(error) => {
                store_failed(&error);
                if let Some(task) = self.tasks.get_mut(id) {
                    task.read_again = Some(self.engine.records.now().saturating_add(RETRY));
                }
                return None;
            }
        };
        let task = self.tasks.get_mut(id)?;
        task.read_again = self.engine.read_again(&record);
        if task.visible.is_some() && task.version == record.version {
            return None;
        }
        task.version = record.version;
        let visible = Some(visible_hash(&record));
        let is_news = task.visible != visible;
        task.visible = visible;
        if record.status.is_terminal() {
            self.forget(id);
        }
        is_news.then_some(record)
    }

    fn forget(&mut self, id: &TaskId) {
        self.tasks.remove(id);
        self.watch.remove(id);
    }
}

/// A record that cannot be read stays so, and must not keep its listener from the other tasks.
fn log_left_out(error: &StoreError) {
    tracing::warn!(error = %error_chain(error), "a task that was asked for cannot be listened to");
}

impl TaskEngine {
    /// Watches those of the tasks that are there and the caller's; the others are left out, whatever is wrong with them.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub(crate) async fn listen(
        &self,
        ids: impl IntoIterator<Item = &str> + Send,
        caller: Caller,
    ) -> Result<TaskListener, ErrorData> {
        let mut listener = TaskListener {
            engine: self.clone(),
            caller,
            watch: self.watchers.watch(),
            tasks: HashMap::new(),
            granted: Vec::new(),
        };
        let ids: Vec<TaskId> = ids.into_iter().take(MOST_WATCHED).map(TaskId::new).collect();
        for id in ids {
            if listener.tasks.contains_key(&id) {
                continue;
            }
            // First the watch, then the read: a change in between is told.
            listener.watch.add(&id);
            match self.find(&id, listener.caller.principal()).await {
                Ok(Some(_)) => {
                    listener.tasks.insert(id.clone(), WatchedTask::default());
                    listener.granted.push(id);
                }
                Ok(None) => listener.watch.remove(&id),
                Err(error @ StoreError::Unreadable { .. }) => {
                    log_left_out(&error);
                    listener.watch.remove(&id);
                }
                Err(error) => return Err(store_failed(&error)),
            }
        }
        Ok(listener)
    }

    /// When a watched task has to be read without a change: at the end of its time, when its lease is over, and now and then
    /// where the store does not tell of changes.
    fn read_again(&self, record: &TaskRecord) -> Option<Timestamp> {
        // At the deadline itself the task is still there, and the lease still good.
        const AFTER: Duration = Duration::from_millis(1);
        let deadline = record.deadline().map(|at| at.saturating_add(AFTER));
        // What waits for a node that takes it on may do so for long.
        let soonest = if record.execution.idle.is_some() {
            LONGEST_INTERVAL
        } else {
            RETRY
        };
        let lease = record
            .execution
            .lease_until
            .filter(|_| record.status == TaskStatus::Working)
            .map(|at| at.saturating_add(AFTER).max(self.records.now().saturating_add(soonest)));
        let poll = self.records.store().as_change_feed().is_none().then(|| {
            let interval = Duration::from_millis(record.poll_interval_ms);
            self.records
                .now()
                .saturating_add(interval.clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL))
        });
        [deadline, lease, poll].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests;
