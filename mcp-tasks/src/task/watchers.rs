//! Which listeners of this node wait for changes of which tasks.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use mcp_tasks_core::TaskId;
use tokio::sync::Notify;

use super::lock;

/// Wakes the listeners that watch a task when it has changed. It keeps nothing for tasks that are not watched, and for a watch
/// no more than which of its tasks have changed: their records are read by the listener, when it gets round to it.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    /// Whether the map may hold anything: a write while no task is watched takes no lock.
    any: AtomicBool,
    by_task: Mutex<HashMap<TaskId, Vec<Arc<Mailbox>>>>,
}

/// The changes that a listener has not taken yet.
#[derive(Debug, Default)]
struct Mailbox {
    changed: Mutex<Changed>,
    notify: Notify,
}

/// In the order in which they changed first, each once.
#[derive(Debug, Default)]
struct Changed {
    order: VecDeque<TaskId>,
    ids: HashSet<TaskId>,
}

impl Mailbox {
    fn put(&self, id: &TaskId) {
        let mut changed = lock(&self.changed);
        if changed.ids.insert(id.clone()) {
            changed.order.push_back(id.clone());
        }
        drop(changed);
        self.notify.notify_one();
    }
}

impl Watchers {
    /// The task has changed.
    pub(crate) fn changed(&self, id: &TaskId) {
        if !self.any.load(Ordering::SeqCst) {
            return;
        }
        if let Some(mailboxes) = lock(&self.by_task).get(id) {
            mailboxes.iter().for_each(|mailbox| mailbox.put(id));
        }
    }

    /// Any task may have changed.
    pub(crate) fn all_changed(&self) {
        for (id, mailboxes) in &*lock(&self.by_task) {
            mailboxes.iter().for_each(|mailbox| mailbox.put(id));
        }
    }

    /// A watch on nothing yet.
    pub(crate) fn watch(self: &Arc<Self>) -> Watch {
        Watch {
            watchers: self.clone(),
            mailbox: Arc::default(),
            tasks: HashSet::new(),
        }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        lock(&self.by_task).len()
    }
}

/// The tasks of one listener. Dropping it ends the watch.
#[derive(Debug)]
pub(crate) struct Watch {
    watchers: Arc<Watchers>,
    mailbox: Arc<Mailbox>,
    tasks: HashSet<TaskId>,
}

impl Watch {
    /// Watches this one too. It counts as changed, so that the listener reads it once at least.
    pub(crate) fn add(&mut self, id: &TaskId) {
        if self.tasks.insert(id.clone()) {
            let mut by_task = lock(&self.watchers.by_task);
            by_task.entry(id.clone()).or_default().push(self.mailbox.clone());
            self.watchers.any.store(true, Ordering::SeqCst);
        }
        self.mailbox.put(id);
    }

    /// Watches this one no more.
    pub(crate) fn remove(&mut self, id: &TaskId) {
        if self.tasks.remove(id) {
            self.unsubscribe(id);
        }
        let mut changed = lock(&self.mailbox.changed);
        if changed.ids.remove(id) {
            changed.order.retain(|other| other != id);
        }
    }

    fn unsubscribe(&self, id: &TaskId) {
        let mut by_task = lock(&self.watchers.by_task);
        if let Entry::Occupied(mut mailboxes) = by_task.entry(id.clone()) {
            mailboxes
                .get_mut()
                .retain(|mailbox| !Arc::ptr_eq(mailbox, &self.mailbox));
            if mailboxes.get().is_empty() {
                mailboxes.remove();
            }
        }
        if by_task.is_empty() {
            self.watchers.any.store(false, Ordering::SeqCst);
        }
    }

    /// Counts this one as changed.
    pub(crate) fn mark_changed(&self, id: &TaskId) {
        self.mailbox.put(id);
    }

    /// A task that has changed. Changes from here on are told again.
    pub(crate) fn next_changed(&self) -> Option<TaskId> {
        let mut changed = lock(&self.mailbox.changed);
        let id = changed.order.pop_front()?;
        changed.ids.remove(&id);
        Some(id)
    }

    /// Resolves when a task may have changed.
    pub(crate) async fn any_changed(&self) {
        self.mailbox.notify.notified().await;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        for id in std::mem::take(&mut self.tasks) {
            self.unsubscribe(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_once_however_often_it_comes_and_to_watchers_of_that_task_alone() {
        let watchers = Arc::new(Watchers::default());
        let (a, b) = (TaskId::new("a"), TaskId::new("b"));
        let (mut one, mut two) = (watchers.watch(), watchers.watch());
        one.add(&a);
        two.add(&b);
        assert_eq!(
            (one.next_changed(), two.next_changed()),
            (Some(a.clone()), Some(b.clone()))
        );
        for _ in 0..1000 {
            watchers.changed(&a);
        }
        assert_eq!(
            (one.next_changed(), one.next_changed(), two.next_changed()),
            (Some(a.clone()), None, None)
        );
        watchers.all_changed();
        assert_eq!((one.next_changed(), two.next_changed()), (Some(a), Some(b)));
    }

    #[test]
    fn a_watch_that_ends_leaves_nothing_behind() {
        let watchers = Arc::new(Watchers::default());
        let id = TaskId::new("a");
        let mut stays = watchers.watch();
        let mut goes = watchers.watch();
        stays.add(&id);
        goes.add(&id);
        goes.add(&TaskId::new("b"));
        drop(goes);
        assert_eq!(watchers.len(), 1);
        stays.remove(&id);
        assert_eq!(watchers.len(), 0);
        assert!(!watchers.any.load(Ordering::SeqCst));
        assert_eq!(stays.next_changed(), None);
    }
}
