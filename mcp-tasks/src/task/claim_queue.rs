//! The tasks that this node is about to claim.

use std::collections::{HashSet, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use mcp_tasks_core::TaskId;
use tokio::sync::Notify;

use super::lock;

/// How many tasks wait here to be claimed, where the store finds the others again: some hundred kilobytes, and more than a
/// node takes on before it looks for more.
const MOST_WAITING: usize = 4096;

/// Tasks that can be claimed, in the order in which they were met, each once.
#[derive(Debug)]
pub(crate) struct ClaimQueue {
    /// Whether this node claims tasks at all.
    is_enabled: bool,
    /// Whether the store finds a task again that there is no room for here.
    is_backed: bool,
    waiting: Mutex<Waiting>,
    added: Notify,
    /// Whether the store has more of them than are waiting here.
    has_more: AtomicBool,
    /// The store is to be looked at again.
    look: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    order: VecDeque<TaskId>,
    ids: HashSet<TaskId>,
}

impl ClaimQueue {
    /// An empty queue. `is_enabled` is whether this node claims tasks at all, `is_backed` whether the store finds a task
    /// again that there is no room for here.
    pub(crate) fn new(is_enabled: bool, is_backed: bool) -> Self {
        Self {
            is_enabled,
            is_backed,
            waiting: Mutex::default(),
            added: Notify::new(),
            has_more: AtomicBool::new(false),
            look: Notify::new(),
        }
    }

    /// The task can be claimed, for all that is known, by this node.
    pub(crate) fn push(&self, id: &TaskId) {
        if !self.is_enabled {
            return;
        }
        let mut waiting = lock(&self.waiting);
        if self.is_backed && waiting.order.len() >= MOST_WAITING {
            self.has_more.store(true, Ordering::Release);
            return;
        }
        if waiting.ids.insert(id.clone()) {
            waiting.order.push_back(id.clone());
            drop(waiting);
            self.added.notify_one();
        }
    }

    fn pop(&self) -> Option<TaskId> {
        let mut waiting = lock(&self.waiting);
        let id = waiting.order.pop_front()?;
        waiting.ids.remove(&id);
        Some(id)
    }

    /// The next task, once there is one. When the queue runs empty the store is looked at for what there was no room for.
    pub(crate) async fn next(&self) -> TaskId {
        loop {
            if let Some(id) = self.pop() {
                return id;
            }
            if self.has_more.swap(false, Ordering::AcqRel) {
                self.request_look();
            }
            self.added.notified().await;
        }
    }

    /// The look at the store found as many as it asked for.
    pub(crate) fn store_has_more(&self) {
        self.has_more.store(true, Ordering::Release);
    }

    /// The store is to be looked at, as something may have been missed.
    pub(crate) fn request_look(&self) {
        self.look.notify_one();
    }

    /// Resolves when the store is to be looked at.
    pub(crate) async fn look_requested(&self) {
        self.look.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn a_task_waits_once_however_often_it_is_met() {
        let claims = ClaimQueue::new(true, true);
        let (a, b) = (TaskId::new("a"), TaskId::new("b"));
        for id in [&a, &b, &a, &a] {
            claims.push(id);
        }
        assert_eq!(
            (claims.pop(), claims.pop(), claims.pop()),
            (Some(a.clone()), Some(b), None)
        );
        claims.push(&a);
        assert_eq!(claims.pop(), Some(a), "taken, it may come again");
    }

    #[test]
    fn what_there_is_no_room_for_is_looked_for_again_and_never_lost_where_it_cannot_be() {
        let [backed, alone] = [true, false].map(|is_backed| ClaimQueue::new(true, is_backed));
        for number in 0..=MOST_WAITING {
            backed.push(&TaskId::new(&number.to_string()));
            alone.push(&TaskId::new(&number.to_string()));
        }
        assert_eq!(lock(&backed.waiting).order.len(), MOST_WAITING);
        assert_eq!(lock(&alone.waiting).order.len(), MOST_WAITING + 1);
        while backed.next().now_or_never().is_some() {}
        assert!(backed.look_requested().now_or_never().is_some());
        assert!(!alone.has_more.load(Ordering::Relaxed));
    }

    #[test]
    fn a_node_that_claims_nothing_queues_nothing() {
        let claims = ClaimQueue::new(false, true);
        claims.push(&TaskId::new("a"));
        assert_eq!(claims.pop(), None);
    }
}
