//! Hearing of changes from a server, over a connection of its own that is there while somebody listens.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;
use mcp_tasks_core::{ChangeFeed, ChangeHub, ChangeStream, StoreError, TaskChange};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::pauses::Pauses;

/// Where changes come from.
pub(super) trait Source: Send + Sync + 'static {
    /// What the log calls it.
    const NAME: &'static str;
    /// The shortest and the longest pause between attempts to listen.
    const PAUSES: (Duration, Duration);

    /// Listens over one connection and tells the listeners, until it breaks or [nobody listens](Listeners::are_gone).
    fn listen(&self, listeners: &Listeners) -> impl Future<Output = End> + Send;
}

/// Why listening ended.
#[derive(Debug)]
pub(super) enum End {
    NobodyListens,
    Failed(StoreError),
}

/// The task that listens to the source.
#[derive(Default)]
enum Task {
    /// Nobody wants it.
    #[default]
    None,
    Started(AbortHandle),
    /// The store is gone, and whoever listens still begins nothing any more.
    Over,
}

/// Who listens in this process.
#[derive(Default)]
pub(super) struct Listeners {
    hub: ChangeHub,
    /// Whoever starts the task or ends it holds the lock.
    task: Mutex<Task>,
    /// Whether the present connection has listened.
    has_begun: AtomicBool,
}

impl Listeners {
    /// From here on the source tells of everything.
    pub(super) fn begin(&self) {
        self.has_begun.store(true, Ordering::Relaxed);
        self.tell(TaskChange::Resumed);
    }

    pub(super) fn tell(&self, change: TaskChange) {
        self.hub.send(change);
    }

    /// Whether nobody listens any more. The task that asks has to end then; whoever comes later begins another.
    pub(super) fn are_gone(&self) -> bool {
        let mut task = self.task();
        let gone = !self.hub.has_listeners();
        if gone && let Task::Started(_) = *task {
            *task = Task::None;
        }
        gone
    }

    /// Begins to listen as a feed's stream does, for what is tested without a feed.
    #[cfg(all(test, feature = "redis"))]
    pub(super) fn listen(&self) -> ChangeStream {
        self.hub.listen()
    }

    /// Nothing that holds the lock can panic half-way.
    fn task(&self) -> MutexGuard<'_, Task> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Passes changes on to whoever listens, and connects to the source when somebody does.
pub(super) struct Feed<S> {
    shared: Arc<Shared<S>>,
}

struct Shared<S> {
    source: S,
    listeners: Listeners,
}

impl<S: Source> Feed<S> {
    pub(super) fn new(source: S) -> Self {
        Self {
            shared: Arc::new(Shared {
                source,
                listeners: Listeners::default(),
            }),
        }
    }
}

impl<S: Source> ChangeFeed for Feed<S> {
    fn changes(&self) -> ChangeStream {
        Box::pin(Changes {
            changes: self.shared.listeners.hub.listen(),
            shared: Arc::downgrade(&self.shared),
        })
    }
}

impl<S> Drop for Feed<S> {
    fn drop(&mut self) {
        if let Task::Started(task) = std::mem::replace(&mut *self.shared.listeners.task(), Task::Over) {
            task.abort();
        }
    }
}

impl<S> fmt::Debug for Feed<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed")
            .field("hub", &self.shared.listeners.hub)
            .finish_non_exhaustive()
    }
}

impl<S: Source> Shared<S> {
    /// Listens, unless it does. Needs a runtime, and does without until there is one.
    fn start(self: &Arc<Self>) {
        let mut task = self.listeners.task();
        let is_due = match &*task {
            Task::None => true,
            Task::Started(task) => task.is_finished(),
            Task::Over => false,
        };
        if is_due && let Ok(runtime) = Handle::try_current() {
            *task = Task::Started(runtime.spawn(self.clone().run()).abort_handle());
        }
    }

    /// Listens until nobody listens here, however often the connection is lost.
    async fn run(self: Arc<Self>) {
        let (first, longest) = S::PAUSES;
        let mut pauses = Pauses::new(first, longest);
        let mut is_known = false;
        loop {
            let error = match self.source.listen(&self.listeners).await {
                End::NobodyListens => return,
                End::Failed(error) => mcp_tasks_core::error_chain(&error),
            };
            if self.listeners.has_begun.swap(false, Ordering::Relaxed) {
                pauses.begin_anew();
                is_known = false;
            }
            let store = S::NAME;
            if is_known {
                tracing::debug!(store, error, "changes of tasks cannot be listened to");
            } else {
                tracing::warn!(
                    store,
                    error,
                    "changes of tasks cannot be listened to at present, and are noticed late; this is tried again until it can"
                );
                is_known = true;
            }
            pauses.pause().await;
            if self.listeners.are_gone() {
                return;
            }
        }
    }
}

/// What a listener holds. It keeps the feed running, also past a runtime that has ended, and not alive.
struct Changes<S> {
    changes: ChangeStream,
    shared: Weak<Shared<S>>,
}

impl<S: Source> Stream for Changes<S> {
    type Item = TaskChange;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<TaskChange>> {
        if let Some(shared) = self.shared.upgrade() {
            shared.start();
        }
        self.changes.as_mut().poll_next(context)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use futures::StreamExt;

    use super::*;

    /// Tells of one change over each connection, which then stays or breaks.
    struct Fake {
        connections: Arc<AtomicU32>,
        breaks: bool,
    }

    impl Source for Fake {
        const NAME: &'static str = "a fake";
        const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

        async fn listen(&self, listeners: &Listeners) -> End {
            self.connections.fetch_add(1, Ordering::Relaxed);
            listeners.begin();
            while !listeners.are_gone() {
                tokio::time::sleep(Duration::from_secs(1)).await;
                if self.breaks {
                    return End::Failed(crate::store::failure::late("it", Duration::ZERO));
                }
            }
            End::NobodyListens
        }
    }

    fn feed(breaks: bool) -> (Feed<Fake>, Arc<AtomicU32>) {
        let connections = Arc::new(AtomicU32::new(0));
        let source = Fake {
            connections: connections.clone(),
            breaks,
        };
        (Feed::new(source), connections)
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_one_connection_while_anybody_listens_and_none_otherwise() {
        let (feed, connections) = feed(false);
        assert_eq!(connections.load(Ordering::Relaxed), 0);
        let (mut one, mut other) = (feed.changes(), feed.changes());
        for changes in [&mut one, &mut other] {
            assert_eq!(changes.next().await, Some(TaskChange::Resumed));
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(connections.load(Ordering::Relaxed), 1);
        drop((one, other));
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(matches!(*feed.shared.listeners.task(), Task::None), "it has ended");
        let mut later = feed.changes();
        for _ in 0..2 {
            assert_eq!(later.next().await, Some(TaskChange::Resumed));
        }
        assert_eq!(connections.load(Ordering::Relaxed), 2);
        drop(feed);
        assert_eq!(later.next().await, None, "it ends with the store");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_breaks_is_replaced_and_listeners_are_told_to_look() {
        let (feed, connections) = feed(true);
        let changes = feed.changes();
        let seen: Vec<_> = changes.take(5).collect().await;
        assert_eq!(seen, vec![TaskChange::Resumed; 5]);
        assert!(connections.load(Ordering::Relaxed) >= 4);
    }

    #[test]
    fn a_runtime_that_ends_takes_no_listener_with_it() {
        let (feed, connections) = feed(false);
        let mut changes = feed.changes();
        for runtimes in 1..=2 {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
                .unwrap();
            runtime.block_on(async {
                while connections.load(Ordering::Relaxed) < runtimes {
                    assert_eq!(changes.next().await, Some(TaskChange::Resumed));
                }
            });
        }
    }
}
