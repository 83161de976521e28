//! Watching tasks for a client that listens, and hearing of changes that other nodes make.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use mcp_tasks_core::{StoreError, TaskChange, TaskId, TaskRecord, TaskStatus, Timestamp, error_chain};
use rmcp::ErrorData;

use super::watchers::Watch;
use super::{Engine, lock, store_failed};
use crate::Caller;

/// How many tasks one listener may watch: what a client can have on its screen, and some hundred kilobytes.
const MOST_WATCHED: usize = 1000;

/// Where the store does not tell of changes, a watched task is looked at as often as its tool says that clients should, but
/// not more often than this, as every listener would be a hot loop in the store,
const SHORTEST_LOOK: Duration = Duration::from_millis(250);
/// and not less often than this, as listening should not be worse than polling.
const LONGEST_LOOK: Duration = Duration::from_secs(5);

/// After how long a task is looked at again that the store could not show, or that nobody could take over.
const RETRY: Duration = Duration::from_secs(1);

/// What a listener has to say.
#[derive(Debug)]
pub(crate) enum ListenerEvent {
    /// A task as it is now: the first look at it, or something that a client can see has changed.
    Changed(Arc<TaskRecord>),
    /// Nothing for as long as was asked.
    Idle,
    /// Nothing more: every task has ended or is gone, or the server stops.
    Ended,
}

/// Watches tasks for one caller. However slowly it is asked, it holds no more than which tasks to look at: between two looks
/// the newest state counts, and the one that ends a task is always among what is seen.
#[derive(Debug)]
pub(crate) struct TaskListener {
    engine: Engine,
    caller: Caller,
    watch: Watch,
    tasks: HashMap<TaskId, Seen>,
    granted: Vec<TaskId>,
}

/// The last look at a task.
#[derive(Debug, Default)]
struct Seen {
    version: u64,
    /// Of what a client can see; `None` before the first look.
    print: Option<u64>,
    /// When to look again even if nobody tells of a change.
    again: Option<Timestamp>,
}

/// A hash of what `tasks/get` shows, but for what cannot change without the rest.
fn print(record: &TaskRecord) -> u64 {
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

    /// The next thing to say. `quiet` is how long there may be nothing.
    ///
    /// Not cancel safe: a listener whose `next` was dropped may have lost a change.
    pub(crate) async fn next(&mut self, quiet: Duration) -> ListenerEvent {
        let silence = tokio::time::Instant::now() + quiet;
        loop {
            while let Some(id) = self.watch.take() {
                if let Some(record) = self.look(&id).await {
                    return ListenerEvent::Changed(record);
                }
            }
            if self.tasks.is_empty() || self.engine.inner.closing.is_cancelled() {
                return ListenerEvent::Ended;
            }
            let again = self.tasks.values().filter_map(|seen| seen.again).min();
            let clock = &self.engine.inner.clock;
            let look_again = async {
                match again {
                    Some(at) => clock.timer(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.engine.inner.closing.cancelled() => {}
                () = self.watch.changed() => {}
                () = look_again => self.mark_due(),
                () = tokio::time::sleep_until(silence) => return ListenerEvent::Idle,
            }
        }
    }

    /// What is due to be looked at again.
    fn mark_due(&mut self) {
        let now = self.engine.now();
        for (id, seen) in &mut self.tasks {
            if seen.again.is_some_and(|at| at <= now) {
                seen.again = None;
                self.watch.mark(id);
            }
        }
    }

    /// The task, if there is something new to see of it.
    async fn look(&mut self, id: &TaskId) -> Option<Arc<TaskRecord>> {
        let record = match self.engine.find(id, self.caller.principal()).await {
            Ok(Some(record)) => record,
            Ok(None) => {
                self.forget(id);
                return None;
            }
            Err(error @ StoreError::Unreadable { .. }) => {
                left_out(&error);
                self.forget(id);
                return None;
            }
            Err(error) => {
                store_failed(&error);
                if let Some(seen) = self.tasks.get_mut(id) {
                    seen.again = Some(self.engine.now().saturating_add(RETRY));
                }
                return None;
            }
        };
        let seen = self.tasks.get_mut(id)?;
        seen.again = self.engine.look_again(&record);
        if seen.print.is_some() && seen.version == record.version {
            return None;
        }
        seen.version = record.version;
        let print = Some(print(&record));
        let is_news = seen.print != print;
        seen.print = print;
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
fn left_out(error: &StoreError) {
    tracing::warn!(error = %error_chain(error), "a task that was asked for cannot be listened to");
}

impl Engine {
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
            watch: self.inner.watchers.watch(),
            tasks: HashMap::new(),
            granted: Vec::new(),
        };
        let ids: Vec<TaskId> = ids.into_iter().take(MOST_WATCHED).map(TaskId::new).collect();
        for id in ids {
            if listener.tasks.contains_key(&id) {
                continue;
            }
            // First the watch, then the look: a change in between is told.
            listener.watch.add(&id);
            match self.find(&id, listener.caller.principal()).await {
                Ok(Some(_)) => {
                    listener.tasks.insert(id.clone(), Seen::default());
                    listener.granted.push(id);
                }
                Ok(None) => listener.watch.remove(&id),
                Err(error @ StoreError::Unreadable { .. }) => {
                    left_out(&error);
                    listener.watch.remove(&id);
                }
                Err(error) => return Err(store_failed(&error)),
            }
        }
        Ok(listener)
    }

    /// When a watched task has to be looked at without a change: at the end of its time, when nobody vouches for it any
    /// more, and now and then where the store does not tell of changes.
    fn look_again(&self, record: &TaskRecord) -> Option<Timestamp> {
        // At the deadline itself the task is still there, and the lease still good.
        const AFTER: Duration = Duration::from_millis(1);
        let deadline = record.deadline().map(|at| at.saturating_add(AFTER));
        // What waits for a node that takes it on may do so for long.
        let soonest = if record.execution.idle.is_some() {
            LONGEST_LOOK
        } else {
            RETRY
        };
        let lease = record
            .execution
            .lease_until
            .filter(|_| record.status == TaskStatus::Working)
            .map(|at| at.saturating_add(AFTER).max(self.now().saturating_add(soonest)));
        let poll = self.inner.store.as_change_feed().is_none().then(|| {
            let interval = Duration::from_millis(record.poll_interval_ms);
            self.now().saturating_add(interval.clamp(SHORTEST_LOOK, LONGEST_LOOK))
        });
        [deadline, lease, poll].into_iter().flatten().min()
    }

    /// Hands on what the store tells of changes, to listeners and to executions of this node, for as long as the engine is
    /// there.
    pub(crate) fn start_hearing(&self) {
        let Some(feed) = self.inner.store.as_change_feed() else {
            return;
        };
        let mut changes = feed.changes();
        let inner = Arc::downgrade(&self.inner);
        let gone = self.inner.gone.clone();
        tokio::spawn(async move {
            loop {
                let change = tokio::select! {
                    change = changes.next() => change,
                    () = gone.cancelled() => return,
                };
                let (Some(change), Some(inner)) = (change, inner.upgrade()) else {
                    return;
                };
                if let TaskChange::Unclaimed { id, .. } = &change {
                    Self { inner: inner.clone() }.may_claim(id);
                }
                match change {
                    TaskChange::Changed { id, version } | TaskChange::Unclaimed { id, version } => {
                        inner.watchers.touch(&id);
                        if let Some(running) = lock(&inner.running).get(&id) {
                            running.hear_of(version);
                        }
                    }
                    // Executions find out for themselves when they renew their leases.
                    TaskChange::Resumed => {
                        inner.watchers.touch_all();
                        inner.claims.look_again();
                    }
                    _ => {}
                }
            }
        });
    }
}

#[cfg(test)]
mod tests;
