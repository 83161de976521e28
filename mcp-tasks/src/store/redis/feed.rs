//! Hearing of changes, over a connection of its own.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use mcp_tasks_core::{ChangeHub, ChangeStream, TaskChange, TaskId};
use redis::aio::PubSub;
use redis::{Client, ProtocolVersion, RedisResult};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::super::message;
use super::super::pauses::Pauses;
use super::connection::Link;

/// How often the server is asked whether it is still there, and whether anybody still listens here: a connection that only
/// listens learns of nothing else.
const LOOK: Duration = Duration::from_secs(5);

/// In a cluster one node passes on what another is told, and says nothing when it misses something. So listeners are told to
/// look at their tasks once in this time, a few polls' worth.
const DOUBT: Duration = Duration::from_secs(30);

/// The pauses between attempts to listen again.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Passes changes on to whoever listens. Connects when somebody does.
pub(super) struct Feed {
    hub: ChangeHub,
    source: Arc<Source>,
    running: Mutex<Option<JoinHandle<()>>>,
}

/// Where changes come from.
struct Source {
    clients: Vec<Client>,
    is_cluster: bool,
    channel: String,
    timeout: Duration,
}

impl Feed {
    pub(super) fn new(link: &Link, channel: String) -> Self {
        let clients = link.endpoint().clients().iter().map(listening);
        Self {
            hub: ChangeHub::new(),
            source: Arc::new(Source {
                clients: clients.collect(),
                is_cluster: link.endpoint().is_cluster(),
                channel,
                timeout: link.timeout(),
            }),
            running: Mutex::new(None),
        }
    }

    pub(super) fn changes(self: &Arc<Self>) -> ChangeStream {
        let changes = Changes {
            changes: self.hub.listen(),
            feed: Arc::downgrade(self),
        };
        self.run();
        Box::pin(changes)
    }

    /// Listens, unless it does. Needs a runtime, and does without until there is one.
    fn run(self: &Arc<Self>) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.as_ref().is_some_and(|running| !running.is_finished()) {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            *running = Some(runtime.spawn(listen(Arc::downgrade(self), self.source.clone())));
        }
    }

    /// Whether nobody listens any more, so that the task which asks has to end. Whoever comes later begins another.
    fn is_over(&self) -> bool {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let over = !self.hub.has_listeners();
        if over {
            *running = None;
        }
        over
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        if let Some(running) = self.running.get_mut().unwrap_or_else(PoisonError::into_inner) {
            running.abort();
        }
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("hub", &self.hub).finish_non_exhaustive()
    }
}

/// What a listener holds. It keeps the feed running, also past a runtime that has ended, and not alive.
struct Changes {
    changes: ChangeStream,
    feed: Weak<Feed>,
}

impl Stream for Changes {
    type Item = TaskChange;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<TaskChange>> {
        let next = self.changes.as_mut().poll_next(context);
        if next.is_pending()
            && let Some(feed) = self.feed.upgrade()
        {
            feed.run();
        }
        next
    }
}

/// The driver's connections that only listen speak the older protocol.
fn listening(client: &Client) -> Client {
    let info = client.get_connection_info().clone();
    let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP2);
    Client::open(info.set_redis_settings(settings)).unwrap_or_else(|_| client.clone())
}

/// Listens for as long as the store is there and somebody listens to it.
async fn listen(feed: Weak<Feed>, source: Arc<Source>) {
    let mut pauses = Pauses::new(SHORTEST_PAUSE, LONGEST_PAUSE);
    let mut next = 0;
    loop {
        let client = &source.clients[next % source.clients.len()];
        next += 1;
        match tokio::time::timeout(source.timeout, subscribe(client, &source.channel)).await {
            Ok(Ok(subscription)) => {
                pauses.begin_anew();
                let events = events(subscription, source.timeout);
                if !pass_on(&feed, source.is_cluster, events).await {
                    return;
                }
                tracing::debug!("the connection on which Redis tells of changes broke; connecting again");
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot listen to changes in Redis, tasks are looked at more slowly; trying again");
            }
            Err(_) => {
                tracing::warn!(
                    "Redis does not answer who wants to listen to changes, tasks are looked at more slowly; trying again"
                );
            }
        }
        if feed.upgrade().is_none_or(|feed| feed.is_over()) {
            return;
        }
        pauses.pause().await;
    }
}

async fn subscribe(client: &Client, channel: &str) -> RedisResult<PubSub> {
    let mut subscription = client.get_async_pubsub().await?;
    subscription.subscribe(channel).await?;
    Ok(subscription)
}

/// What happens on the connection that listens.
enum Event {
    Change(TaskChange),
    /// The server is there.
    Alive,
    /// The server is not.
    Gone,
}

fn read(message: &[u8]) -> TaskChange {
    std::str::from_utf8(message).map_or(TaskChange::Resumed, |message| message::read(message, TaskId::new))
}

fn events(subscription: PubSub, timeout: Duration) -> impl Stream<Item = Event> {
    let (sink, messages) = subscription.split();
    let changes = messages.map(|message| Event::Change(read(message.get_payload_bytes())));
    let looks = stream::unfold(sink, move |mut sink| async move {
        tokio::time::sleep(LOOK).await;
        let answered = tokio::time::timeout(timeout, sink.ping::<redis::Value>()).await;
        let event = if matches!(answered, Ok(Ok(_))) {
            Event::Alive
        } else {
            Event::Gone
        };
        Some((event, sink))
    });
    stream::select(changes.chain(stream::iter([Event::Gone])), looks)
}

/// Passes changes on until the connection breaks (true) or nobody wants them any more (false).
async fn pass_on(feed: &Weak<Feed>, is_cluster: bool, events: impl Stream<Item = Event>) -> bool {
    let mut events = std::pin::pin!(events);
    let mut doubted = tokio::time::Instant::now();
    let mut change = TaskChange::Resumed;
    loop {
        match feed.upgrade() {
            Some(feed) => feed.hub.send(change),
            None => return false,
        }
        change = loop {
            match events.next().await {
                Some(Event::Change(change)) => break change,
                Some(Event::Alive) if feed.upgrade().is_none_or(|feed| feed.is_over()) => return false,
                Some(Event::Alive) if is_cluster && doubted.elapsed() >= DOUBT => {
                    doubted = tokio::time::Instant::now();
                    break TaskChange::Resumed;
                }
                Some(Event::Alive) => {}
                Some(Event::Gone) | None => return true,
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed() -> Arc<Feed> {
        Arc::new(Feed {
            hub: ChangeHub::new(),
            source: Arc::new(Source {
                clients: Vec::new(),
                is_cluster: false,
                channel: String::new(),
                timeout: Duration::ZERO,
            }),
            running: Mutex::new(None),
        })
    }

    /// The server is there every time it is asked, so often, and then it is not.
    fn alive(times: usize) -> impl Stream<Item = Event> {
        let looks = stream::iter(0..times).then(|_| async {
            tokio::time::sleep(LOOK).await;
            Event::Alive
        });
        looks.chain(stream::iter([Event::Gone]))
    }

    #[tokio::test(start_paused = true)]
    async fn in_a_cluster_listeners_are_told_to_look_from_time_to_time() {
        for (is_cluster, expected) in [(true, 1 + 1 + 2), (false, 1 + 1)] {
            let feed = feed();
            let changes = feed.hub.listen();
            // A reader that keeps up, as what nobody has taken is told once.
            let reader = tokio::spawn(changes.collect::<Vec<_>>());
            tokio::task::yield_now().await;
            let after = usize::try_from(2 * DOUBT.as_secs() / LOOK.as_secs()).unwrap();
            assert!(
                pass_on(&Arc::downgrade(&feed), is_cluster, alive(after)).await,
                "it broke"
            );
            drop(feed);
            assert_eq!(reader.await.unwrap(), vec![TaskChange::Resumed; expected]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_when_nobody_listens_any_more_and_when_the_store_is_gone() {
        let feed = feed();
        let changes = feed.hub.listen();
        let weak = Arc::downgrade(&feed);
        let begin = tokio::time::Instant::now();
        tokio::spawn(async move {
            tokio::time::sleep(LOOK * 3 / 2).await;
            drop(changes);
        });
        assert!(!pass_on(&weak, false, alive(1_000)).await, "it is over");
        assert_eq!(begin.elapsed(), LOOK * 2);
        let _changes = feed.hub.listen();
        drop(feed);
        assert!(!pass_on(&weak, false, alive(1_000)).await);
    }
}
