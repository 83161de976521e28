//! Changes as they are made, over `LISTEN` and `NOTIFY`.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::poll_fn;
use mcp_tasks_core::store::RecordMarks;
use mcp_tasks_core::{ChangeFeed, ChangeHub, ChangeStream, StoreError, TaskChange, TaskId};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio_postgres::AsyncMessage;

use super::super::message;
use super::super::pauses::Pauses;
use super::backend::{original, storable};
use super::database::{Database, Server};
use super::error::{store_error, too_late};

/// For how long writers tell of their writes once somebody has said that he listens, and how often that is said again: often
/// enough that one late word does no harm, and seldom enough to cost nothing. It is also how soon a connection that was cut
/// without a word is noticed.
const WANTED: &str = "60 seconds";
const AGAIN: Duration = Duration::from_secs(20);

/// A write that had begun when listening began may not have known of it. Nearly all of those are done by now; the rest after
/// the time that any operation may take.
const NEARLY_ALL: Duration = Duration::from_millis(250);

/// PostgreSQL takes less than 8,000 bytes.
const PAYLOAD: usize = 7_900;

/// PostgreSQL cuts names to 63 bytes.
const NAME: usize = 63;

/// What a connection that was lost is tried again after: soon at first, as a server's restart takes seconds.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(10);

/// The channel of a prefix. Two that share one hear of each other's tasks, which does no harm.
pub(super) fn channel(prefix: &str) -> &str {
    let end = (0..=prefix.len().min(NAME))
        .rev()
        .find(|end| prefix.is_char_boundary(*end));
    &prefix[..end.unwrap_or_default()]
}

/// What is said of a write.
pub(super) fn payload(stored_id: &str, marks: Option<RecordMarks>) -> String {
    let payload = match marks {
        Some(marks) => message::write(marks, stored_id),
        None => message::removed(stored_id),
    };
    // An id too long to be told makes everybody look.
    if payload.len() > PAYLOAD {
        String::new()
    } else {
        payload
    }
}

fn change(payload: &str) -> TaskChange {
    message::read(payload, |id| TaskId::new(&original(id)))
}

/// The feed of a store: a connection of its own while anybody listens.
#[derive(Debug)]
pub(super) struct Feed {
    shared: Arc<Shared>,
}

struct Shared {
    hub: ChangeHub,
    server: Server,
    database: Arc<Database>,
    prefix: String,
    timeout: Duration,
    /// The task that listens. Whoever starts or ends it holds the lock.
    task: Mutex<Option<AbortHandle>>,
}

/// Why listening ended.
enum End {
    NobodyListens,
    Failed(StoreError),
}

impl Feed {
    pub(super) fn new(server: Server, database: Arc<Database>, prefix: &str, timeout: Duration) -> Self {
        Self {
            shared: Arc::new(Shared {
                hub: ChangeHub::new(),
                server,
                database,
                prefix: storable(prefix).into_owned(),
                timeout,
                task: Mutex::new(None),
            }),
        }
    }
}

impl ChangeFeed for Feed {
    fn changes(&self) -> ChangeStream {
        let mut stream = self.shared.hub.listen();
        let shared = Arc::downgrade(&self.shared);
        let mut is_started = false;
        // With the first poll, which has a runtime to start the task on. Nothing was given out until then.
        Box::pin(poll_fn(move |context| {
            if !is_started && let Some(shared) = shared.upgrade() {
                is_started = shared.start();
            }
            Pin::new(&mut stream).poll_next_unpin(context)
        }))
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        if let Some(task) = self.shared.task().take() {
            task.abort();
        }
    }
}

impl Shared {
    fn task(&self) -> MutexGuard<'_, Option<AbortHandle>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the task unless it runs. Returns whether it does.
    fn start(self: &Arc<Self>) -> bool {
        let mut task = self.task();
        if task.as_ref().is_none_or(AbortHandle::is_finished) {
            let Ok(runtime) = Handle::try_current() else {
                return false;
            };
            *task = Some(runtime.spawn(Self::run(self.clone())).abort_handle());
        }
        true
    }

    /// Listens until nobody listens here, however often the connection is lost.
    async fn run(self: Arc<Self>) {
        let mut delays = Pauses::new(FIRST_DELAY, LONGEST_DELAY);
        loop {
            let mut was_connected = false;
            match self.listen(&mut was_connected).await {
                End::NobodyListens => return,
                End::Failed(error) => tracing::warn!(
                    error = %crate::engine::error_chain(&error),
                    "changes of tasks on other nodes are noticed late: the PostgreSQL store cannot be listened to; trying again"
                ),
            }
            if was_connected {
                delays.begin_anew();
            }
            delays.pause().await;
            let mut task = self.task();
            if !self.hub.has_listeners() {
                *task = None;
                return;
            }
        }
    }

    async fn listen(&self, was_connected: &mut bool) -> End {
        let connecting = async {
            self.database.ready().await?;
            self.server.connect().await.map_err(store_error)
        };
        let (client, mut messages) = match tokio::time::timeout(self.timeout, connecting).await {
            Ok(Ok(connected)) => connected,
            Ok(Err(error)) => return End::Failed(error),
            Err(_) => return End::Failed(too_late(self.timeout)),
        };
        let hearing = async {
            loop {
                match messages.next().await {
                    Some(Ok(AsyncMessage::Notification(notification))) => self.hub.send(change(notification.payload())),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return End::Failed(store_error(error)),
                    None => {
                        return End::Failed(StoreError::Unavailable {
                            reason: "the connection to the PostgreSQL server was closed".to_owned(),
                            source: None,
                        });
                    }
                }
            }
        };
        let keeping = async {
            if let Err(error) = self.begin(&client).await {
                return End::Failed(error);
            }
            *was_connected = true;
            self.hub.send(TaskChange::Resumed);
            for settled in [NEARLY_ALL, self.timeout] {
                tokio::time::sleep(settled).await;
                self.hub.send(TaskChange::Resumed);
            }
            loop {
                tokio::time::sleep(AGAIN).await;
                {
                    let mut task = self.task();
                    if !self.hub.has_listeners() {
                        *task = None;
                        return End::NobodyListens;
                    }
                }
                if let Err(error) = self.say(&client).await {
                    return End::Failed(error);
                }
            }
        };
        tokio::select! {
            end = hearing => end,
            end = keeping => end,
        }
    }

    /// Listens first and then says so: whoever tells of a write is heard.
    async fn begin(&self, client: &tokio_postgres::Client) -> Result<(), StoreError> {
        let channel = channel(&self.prefix).replace('"', "\"\"");
        let sql = format!("LISTEN \"{channel}\"");
        let listening = async { client.batch_execute(&sql).await.map_err(store_error) };
        self.database.in_time(listening).await?;
        self.say(client).await
    }

    async fn say(&self, client: &tokio_postgres::Client) -> Result<(), StoreError> {
        let feed = &self.database.names.feed;
        let sql = format!(
            "INSERT INTO {feed} AS feed (prefix, wanted_until) VALUES ($1, now() + interval '{WANTED}') \
             ON CONFLICT (prefix) DO UPDATE SET wanted_until = greatest(feed.wanted_until, excluded.wanted_until)"
        );
        let saying = async { client.execute(&sql, &[&self.prefix]).await.map_err(store_error) };
        self.database.in_time(saying).await.map(drop)
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").field("hub", &self.hub).finish_non_exhaustive()
    }
}
