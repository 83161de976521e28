//! Hearing of changes, over a connection of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use mcp_tasks_core::{StoreError, TaskChange, TaskId};
use redis::aio::PubSub;
use redis::{Client, ProtocolVersion, RedisResult};

use super::connection::Link;
use super::error::store_error;
use crate::store::failure::late;
use crate::store::feed::{End, Listeners, Source};
use crate::store::message;

/// How often the server is asked whether it is still there, and whether anybody still listens here: a connection that only
/// listens learns of nothing else.
const LOOK: Duration = Duration::from_secs(5);

/// In a cluster one node passes on what another is told, and says nothing when it misses something. So listeners are told to
/// look at their tasks once in this time, a few polls' worth.
const DOUBT: Duration = Duration::from_secs(30);

/// The pauses between attempts to listen again.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The channel on which the nodes tell each other.
pub(super) struct Channel {
    clients: Vec<Client>,
    /// How many connections there were: each goes to the next of the clients.
    connections: AtomicUsize,
    is_cluster: bool,
    name: String,
    timeout: Duration,
}

impl Channel {
    pub(super) fn new(link: &Link, name: String) -> Self {
        Self {
            clients: link.endpoint().clients().iter().map(listening).collect(),
            connections: AtomicUsize::new(0),
            is_cluster: link.endpoint().is_cluster(),
            name,
            timeout: link.timeout(),
        }
    }

    async fn subscribe(&self) -> RedisResult<PubSub> {
        let turn = self.connections.fetch_add(1, Ordering::Relaxed);
        let mut subscription = self.clients[turn % self.clients.len()].get_async_pubsub().await?;
        subscription.subscribe(&self.name).await?;
        Ok(subscription)
    }
}

impl Source for Channel {
    const NAME: &'static str = "Redis";
    const PAUSES: (Duration, Duration) = (SHORTEST_PAUSE, LONGEST_PAUSE);

    async fn listen(&self, listeners: &Listeners) -> End {
        match tokio::time::timeout(self.timeout, self.subscribe()).await {
            Ok(Ok(subscription)) => pass_on(listeners, self.is_cluster, events(subscription, self.timeout)).await,
            Ok(Err(error)) => End::Failed(store_error(error)),
            Err(_) => End::Failed(late("the Redis server", self.timeout)),
        }
    }
}

/// The driver's connections that only listen speak the older protocol.
fn listening(client: &Client) -> Client {
    let info = client.get_connection_info().clone();
    let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP2);
    Client::open(info.set_redis_settings(settings)).unwrap_or_else(|_| client.clone())
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

/// Passes changes on until the connection breaks or nobody wants them any more.
async fn pass_on(listeners: &Listeners, is_cluster: bool, events: impl Stream<Item = Event>) -> End {
    let mut events = std::pin::pin!(events);
    let mut doubted = tokio::time::Instant::now();
    listeners.begin();
    loop {
        match events.next().await {
            Some(Event::Change(change)) => listeners.tell(change),
            Some(Event::Alive) if listeners.are_gone() => return End::NobodyListens,
            Some(Event::Alive) if is_cluster && doubted.elapsed() >= DOUBT => {
                doubted = tokio::time::Instant::now();
                listeners.tell(TaskChange::Resumed);
            }
            Some(Event::Alive) => {}
            Some(Event::Gone) | None => {
                return End::Failed(StoreError::Unavailable {
                    reason: "the connection on which Redis tells of changes broke".to_owned(),
                    source: None,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let listeners = Listeners::default();
            let changes = listeners.listen();
            // A reader that keeps up, as what nobody has taken is told once.
            let reader = tokio::spawn(changes.collect::<Vec<_>>());
            tokio::task::yield_now().await;
            let after = usize::try_from(2 * DOUBT.as_secs() / LOOK.as_secs()).unwrap();
            let end = pass_on(&listeners, is_cluster, alive(after)).await;
            assert!(matches!(end, End::Failed(_)), "it broke: {end:?}");
            drop(listeners);
            assert_eq!(reader.await.unwrap(), vec![TaskChange::Resumed; expected]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_when_nobody_listens_any_more() {
        let listeners = Listeners::default();
        let changes = listeners.listen();
        let begin = tokio::time::Instant::now();
        tokio::spawn(async move {
            tokio::time::sleep(LOOK * 3 / 2).await;
            drop(changes);
        });
        let end = pass_on(&listeners, false, alive(1_000)).await;
        assert!(matches!(end, End::NobodyListens), "it is over: {end:?}");
        assert_eq!(begin.elapsed(), LOOK * 2);
    }
}
