//! Changes as they are made, over `LISTEN` and `NOTIFY`.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use mcp_tasks_core::store::RecordMarks;
use mcp_tasks_core::{StoreError, TaskChange, TaskId};
use tokio_postgres::AsyncMessage;

use super::backend::{original, storable};
use super::database::{Database, Server};
use super::error::{store_error, too_late};
use crate::store::feed::{End, Listeners, Source};
use crate::store::message;

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

/// The channel on which the nodes tell each other, heard on a connection outside the pool.
pub(super) struct Channel {
    server: Server,
    database: Arc<Database>,
    prefix: String,
    timeout: Duration,
}

impl Channel {
    pub(super) fn new(server: Server, database: Arc<Database>, prefix: &str, timeout: Duration) -> Self {
        Self {
            server,
            database,
            prefix: storable(prefix).into_owned(),
            timeout,
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

    /// Sees to it that writers go on telling, until nobody listens.
    async fn keep(&self, client: &tokio_postgres::Client, listeners: &Listeners) -> Result<(), StoreError> {
        self.begin(client).await?;
        listeners.begin();
        for settled in [NEARLY_ALL, self.timeout] {
            tokio::time::sleep(settled).await;
            listeners.tell(TaskChange::Resumed);
        }
        loop {
            tokio::time::sleep(AGAIN).await;
            if listeners.are_gone() {
                return Ok(());
            }
            self.say(client).await?;
        }
    }
}

impl Source for Channel {
    const NAME: &'static str = "PostgreSQL";
    const PAUSES: (Duration, Duration) = (FIRST_DELAY, LONGEST_DELAY);

    async fn listen(&self, listeners: &Listeners) -> End {
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
                    Some(Ok(AsyncMessage::Notification(notification))) => {
                        listeners.tell(change(notification.payload()));
                    }
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return store_error(error),
                    None => {
                        return StoreError::Unavailable {
                            reason: "the connection to the PostgreSQL server was closed".to_owned(),
                            source: None,
                        };
                    }
                }
            }
        };
        tokio::select! {
            error = hearing => End::Failed(error),
            kept = self.keep(&client, listeners) => kept.map_or_else(End::Failed, |()| End::NobodyListens),
        }
    }
}
