//! Hearing of changes instead of looking for them.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;

use crate::TaskId;

/// What a change feed says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskChange {
    /// The task was written, or removed: `get` tells which, and what it is now.
    Changed {
        /// The task.
        id: TaskId,
        /// The version of the record that was written, where the feed knows it. Whoever has that version or a later one
        /// need not look.
        version: Option<u64>,
    },
    /// As [`Changed`](Self::Changed), and the task is [unclaimed](crate::Idle::Unclaimed): a node that has its tool may take
    /// it on.
    Unclaimed {
        /// The task.
        id: TaskId,
        /// The version of the record that was written, where the feed knows it.
        version: Option<u64>,
    },
    /// From here on everything is reported; of what was written before something may have been missed. Whoever waits for
    /// a task looks at it now.
    ///
    /// It is the first item of every stream, and comes again after the feed was interrupted or could not keep up.
    Resumed,
}

/// The changes of all tasks in a store, from the [`Resumed`](TaskChange::Resumed) at its beginning onward.
pub type ChangeStream = Pin<Box<dyn Stream<Item = TaskChange> + Send>>;

/// The ability to tell of changes as they are made, by whichever process. Without it whoever waits for a task looks at it
/// from time to time.
///
/// # Contract
///
/// * A write that is acknowledged after [`Resumed`](TaskChange::Resumed) was given out is followed by a
///   [`Changed`](TaskChange::Changed) or [`Unclaimed`](TaskChange::Unclaimed) of its task, or by another `Resumed`. Several
///   writes of a task may be reported as one. A change may be reported that was not made.
/// * A feed that can tell unclaimed tasks from others by what it hears says `Unclaimed`, and nodes take them on at once. One
///   that cannot says `Changed`, and they are found by the next look for
///   [expired leases](super::ExpiredLeases).
/// * A change is reported after `get` can see it.
/// * What expires is not reported: deadlines are in the records.
/// * A stream whose reader is slow holds a bounded number of changes: behind that it drops them and says `Resumed`.
/// * A stream that is interrupted mends itself, with back-off, and says `Resumed`. It ends with the store.
pub trait ChangeFeed: Send + Sync {
    /// Begins to listen. Dropping the stream ends that.
    fn changes(&self) -> ChangeStream;
}

/// How many changes a listener may be behind before it is told to look at everything instead: some hundred kilobytes.
const BEHIND: usize = 4096;

impl TaskChange {
    /// A write of this version of a task, which is unclaimed or not.
    #[must_use]
    pub const fn of(id: TaskId, version: Option<u64>, unclaimed: bool) -> Self {
        if unclaimed {
            Self::Unclaimed { id, version }
        } else {
            Self::Changed { id, version }
        }
    }
}

/// Hands changes from where they are made or received to any number of listeners: what a store's [`ChangeFeed`] can be
/// made of. Cloning shares it.
///
/// ```
/// use mcp_tasks_core::{ChangeHub, TaskChange, TaskId};
///
/// let hub = ChangeHub::new();
/// let changes = hub.listen();
/// hub.send(TaskChange::Changed { id: TaskId::new("task"), version: Some(1) });
/// # let _ = changes;
/// ```
#[derive(Clone, Default)]
pub struct ChangeHub {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Whether the list may hold a listener: a write that nobody listens to takes no lock.
    any: AtomicBool,
    listeners: Mutex<Vec<Weak<Mutex<Waiting>>>>,
}

/// What a listener has not taken yet.
struct Waiting {
    changes: VecDeque<TaskChange>,
    waker: Option<Waker>,
    ended: bool,
}

impl Waiting {
    /// Whoever waits is to be woken once no lock is held: a waker is code of others, which may poll or send at once.
    #[must_use]
    fn push(&mut self, change: TaskChange) -> Option<Waker> {
        if self.changes.len() >= BEHIND {
            self.changes.clear();
            self.changes.push_back(TaskChange::Resumed);
        } else if self.changes.back() != Some(&change) {
            self.changes.push_back(change);
        }
        self.waker.take()
    }
}

/// Nothing that holds one of these locks can panic half-way.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ChangeHub {
    /// A hub without listeners.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A stream of what is [sent](Self::send) from now on, with a [`Resumed`](TaskChange::Resumed) at its beginning. It
    /// ends when the last clone of the hub is gone.
    #[must_use]
    pub fn listen(&self) -> ChangeStream {
        let waiting = Arc::new(Mutex::new(Waiting {
            changes: VecDeque::from([TaskChange::Resumed]),
            waker: None,
            ended: false,
        }));
        let mut listeners = lock(&self.shared.listeners);
        listeners.push(Arc::downgrade(&waiting));
        self.shared.any.store(true, Ordering::SeqCst);
        drop(listeners);
        Box::pin(Listener { waiting })
    }

    /// Whether anybody listens. Forgets those that no longer do.
    #[must_use]
    pub fn has_listeners(&self) -> bool {
        let mut listeners = lock(&self.shared.listeners);
        listeners.retain(|listener| listener.strong_count() > 0);
        self.shared.any.store(!listeners.is_empty(), Ordering::SeqCst);
        !listeners.is_empty()
    }

    /// Tells every listener. Never waits for one.
    pub fn send(&self, change: TaskChange) {
        if !self.shared.any.load(Ordering::SeqCst) {
            return;
        }
        let mut wakers = Vec::new();
        let mut listeners = lock(&self.shared.listeners);
        listeners.retain(|listener| {
            let Some(waiting) = listener.upgrade() else {
                return false;
            };
            wakers.extend(lock(&waiting).push(change.clone()));
            true
        });
        self.shared.any.store(!listeners.is_empty(), Ordering::SeqCst);
        drop(listeners);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        for waiting in lock(&self.listeners).iter().filter_map(Weak::upgrade) {
            let mut waiting = lock(&waiting);
            waiting.ended = true;
            let waker = waiting.waker.take();
            drop(waiting);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl fmt::Debug for ChangeHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeHub")
            .field("listeners", &lock(&self.shared.listeners).len())
            .finish()
    }
}

struct Listener {
    waiting: Arc<Mutex<Waiting>>,
}

impl Stream for Listener {
    type Item = TaskChange;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<TaskChange>> {
        let mut waiting = lock(&self.waiting);
        if let Some(change) = waiting.changes.pop_front() {
            return Poll::Ready(Some(change));
        }
        if waiting.ended {
            return Poll::Ready(None);
        }
        match &mut waiting.waker {
            // Most polls come from the task that polled before.
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::task::Wake;

    use super::*;

    fn next(stream: &mut ChangeStream) -> Poll<Option<TaskChange>> {
        stream.as_mut().poll_next(&mut Context::from_waker(Waker::noop()))
    }

    fn changed(id: &str, version: u64) -> TaskChange {
        TaskChange::Changed {
            id: TaskId::new(id),
            version: Some(version),
        }
    }

    #[test]
    fn a_listener_is_told_to_look_and_then_of_every_change() {
        let hub = ChangeHub::new();
        hub.send(changed("before", 1));
        let mut stream = hub.listen();
        hub.send(changed("a", 1));
        hub.send(changed("b", 1));
        assert_eq!(next(&mut stream), Poll::Ready(Some(TaskChange::Resumed)));
        assert_eq!(next(&mut stream), Poll::Ready(Some(changed("a", 1))));
        assert_eq!(next(&mut stream), Poll::Ready(Some(changed("b", 1))));
        assert_eq!(next(&mut stream), Poll::Pending);
        drop(hub);
        assert_eq!(next(&mut stream), Poll::Ready(None));
    }

    #[test]
    fn a_change_that_is_told_again_takes_no_more_room() {
        let hub = ChangeHub::new();
        let mut stream = hub.listen();
        for id in ["a", "a", "b", "a"] {
            hub.send(changed(id, 1));
        }
        let said = std::iter::from_fn(|| match next(&mut stream) {
            Poll::Ready(change) => change,
            Poll::Pending => None,
        });
        let expected = [TaskChange::Resumed, changed("a", 1), changed("b", 1), changed("a", 1)];
        assert_eq!(said.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_slow_listener_holds_a_bounded_number_and_is_told_to_look() {
        let hub = ChangeHub::new();
        let mut stream = hub.listen();
        for version in 0..20_000 {
            hub.send(changed("a", version));
        }
        let mut seen = Vec::new();
        while let Poll::Ready(Some(change)) = next(&mut stream) {
            seen.push(change);
        }
        assert!(seen.len() <= BEHIND, "{}", seen.len());
        assert_eq!(seen.first(), Some(&TaskChange::Resumed));
        assert_eq!(seen.last(), Some(&changed("a", 19_999)));
    }

    /// A waker that does at once what it is woken for, as executors on one thread may.
    struct PollsAtOnce {
        stream: Mutex<Option<ChangeStream>>,
        seen: Mutex<Vec<TaskChange>>,
        hub: ChangeHub,
    }

    impl Wake for PollsAtOnce {
        fn wake(self: Arc<Self>) {
            let Some(mut stream) = lock(&self.stream).take() else {
                return;
            };
            let waker = Waker::from(self.clone());
            let polled = stream.as_mut().poll_next(&mut Context::from_waker(&waker));
            *lock(&self.stream) = Some(stream);
            if let Poll::Ready(Some(change)) = polled {
                lock(&self.seen).push(change);
                assert!(self.hub.has_listeners());
            }
        }
    }

    #[test]
    fn a_listener_may_be_polled_by_its_waker() {
        let hub = ChangeHub::new();
        let mut stream = hub.listen();
        assert_eq!(next(&mut stream), Poll::Ready(Some(TaskChange::Resumed)));
        let eager = Arc::new(PollsAtOnce {
            stream: Mutex::default(),
            seen: Mutex::default(),
            hub: hub.clone(),
        });
        let waker = Waker::from(eager.clone());
        assert_eq!(
            stream.as_mut().poll_next(&mut Context::from_waker(&waker)),
            Poll::Pending
        );
        *lock(&eager.stream) = Some(stream);
        hub.send(changed("a", 1));
        assert_eq!(*lock(&eager.seen), [changed("a", 1)]);
    }

    #[test]
    fn a_listener_that_went_is_forgotten() {
        let hub = ChangeHub::new();
        let stream = hub.listen();
        assert!(hub.has_listeners());
        drop(stream);
        assert!(!hub.has_listeners());
    }
}
