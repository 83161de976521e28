//! Follows the bucket: for the index of this process, and for whoever listens to changes.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, ReplayPolicy, push};
use async_nats::{Message, StatusCode, header};
use futures::StreamExt;
use mcp_tasks_core::{ChangeHub, StoreError, TaskChange, TaskId, Timestamp};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::bucket::Bucket;
use super::connection::Connection;
use super::delivery::Delivery;
use super::error::{late, of_request, refused, unavailable};
use super::index::Index;
use super::marks::{Marks, is_marker};
use super::name;
use crate::store::pauses::Pauses;

/// How often the server says that it is there when nothing is written. With the patience below, an interruption that
/// nothing else tells of is noticed within 15 s, half a default lease.
const HEARTBEAT: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(15);

/// Pauses between attempts to follow: the first is short, as a server that restarts is back soon; the longest is a small
/// part of a lease.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// The header of a heartbeat that waits for an answer before more is sent.
const STALLED: &str = "Nats-Consumer-Stalled";

/// Follows the bucket from the first time it is asked to until it is dropped.
pub(super) struct Watcher {
    connection: Arc<Connection>,
    shared: Mutex<Option<Arc<Shared>>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    index: Mutex<Index>,
    hub: ChangeHub,
    progress: watch::Sender<Progress>,
}

/// How far the index is.
#[derive(Debug, Clone)]
enum Progress {
    Reading,
    /// It has everything that was there when it began, and follows.
    Complete,
    Refused(String),
}

/// Nothing that holds one of these locks can panic half-way.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watcher {
    pub(super) fn new(connection: Arc<Connection>) -> Self {
        Self {
            connection,
            shared: Mutex::default(),
            task: Mutex::default(),
        }
    }

    /// Sees to it that the bucket is followed. To be called inside tokio.
    fn start(&self) -> Arc<Shared> {
        let mut shared = lock(&self.shared);
        let shared = shared.get_or_insert_with(|| {
            Arc::new(Shared {
                index: Mutex::default(),
                hub: ChangeHub::new(),
                progress: watch::Sender::new(Progress::Reading),
            })
        });
        let mut task = lock(&self.task);
        // It ends by itself only with the runtime it was started on.
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            let _ = shared.progress.send_replace(Progress::Reading);
            *task = Some(tokio::spawn(follow(self.connection.clone(), shared.clone())));
        }
        shared.clone()
    }

    /// Listens to changes.
    pub(super) fn listen(&self) -> mcp_tasks_core::ChangeStream {
        self.start().hub.listen()
    }

    /// Works on the index, once it is complete.
    pub(super) async fn indexed(&self, within: Duration) -> Result<Indexed, StoreError> {
        let shared = self.start();
        let mut progress = shared.progress.subscribe();
        let settled = progress.wait_for(|progress| !matches!(progress, Progress::Reading));
        let settled = match timeout(within, settled).await {
            Err(_) => return Err(late(within)),
            // The sender is in `shared`.
            Ok(Err(_)) => return Err(late(within)),
            Ok(Ok(progress)) => progress.clone(),
        };
        match settled {
            Progress::Refused(reason) => Err(refused(reason)),
            Progress::Reading | Progress::Complete => Ok(Indexed { shared }),
        }
    }

    /// A write of this process was made. The index has it at once, where there is one.
    pub(super) fn note(&self, key: &str, revision: u64, marks: Marks) {
        if let Some(shared) = &*lock(&self.shared) {
            lock(&shared.index).note(key, revision, marks);
        }
    }

    /// This state of the key is gone.
    pub(super) fn forget(&self, key: &str, revision: u64) {
        if let Some(shared) = &*lock(&self.shared) {
            lock(&shared.index).forget(key, revision);
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if let Some(task) = lock(&self.task).take() {
            task.abort();
        }
    }
}

/// A complete index.
pub(super) struct Indexed {
    shared: Arc<Shared>,
}

impl Indexed {
    pub(super) fn index(&self) -> MutexGuard<'_, Index> {
        lock(&self.shared.index)
    }
}

/// Up to where the bucket was followed.
struct Position {
    sequence: u64,
    /// When the stream was made: one of the same name that was made since is another.
    made: String,
}

/// Follows until it is aborted.
async fn follow(connection: Arc<Connection>, shared: Arc<Shared>) {
    let mut pauses = Pauses::new(FIRST_PAUSE, LONGEST_PAUSE);
    let mut position = None;
    let mut warned = false;
    loop {
        let mut complete = false;
        let Err(error) = session(&connection, &shared, &mut position, &mut complete).await;
        if complete {
            pauses.begin_anew();
            warned = false;
        }
        if let StoreError::Refused { reason, .. } = &error {
            shared.progress.send_if_modified(|progress| {
                let reading = matches!(progress, Progress::Reading);
                if reading {
                    *progress = Progress::Refused(reason.clone());
                }
                reading
            });
        }
        let error = mcp_tasks_core::error_chain(&error);
        if warned {
            tracing::debug!(error, "the NATS bucket cannot be followed");
        } else {
            tracing::warn!(
                error,
                "the NATS bucket cannot be followed at present; this is tried again until it can"
            );
            warned = true;
        }
        pauses.pause().await;
    }
}

/// Follows until something is in the way.
async fn session(
    connection: &Connection,
    shared: &Shared,
    position: &mut Option<Position>,
    complete: &mut bool,
) -> Result<Infallible, StoreError> {
    let mut interruptions = connection.interruptions();
    let bucket = connection.bucket().await?;
    let info = connection
        .watched(&["STREAM.INFO."], bucket.info())
        .await
        .inspect_err(|_| connection.forget_bucket())?;
    let (made, newest) = (format!("{:?}", info.created), info.state.last_sequence);
    // Another stream, or one that lost its end, begins anew.
    let from = position
        .take()
        .filter(|known| known.made == made && known.sequence <= newest);
    let deliver_policy = match &from {
        Some(known) => DeliverPolicy::ByStartSequence {
            start_sequence: known.sequence + 1,
        },
        None => {
            lock(&shared.index).clear();
            DeliverPolicy::LastPerSubject
        }
    };
    let inbox = bucket.client.new_inbox();
    // Listening first, so that nothing is sent before anybody listens.
    let subscribed = async { bucket.client.subscribe(inbox.clone()).await.map_err(of_request) };
    let mut messages = connection.watched(&[], subscribed).await?;
    let made_consumer = async {
        let config = push::Config {
            deliver_subject: inbox,
            description: Some("mcp-tasks: index and change feed".to_owned()),
            deliver_policy,
            ack_policy: AckPolicy::None,
            filter_subject: bucket.stored(">"),
            replay_policy: ReplayPolicy::Instant,
            headers_only: true,
            flow_control: true,
            idle_heartbeat: HEARTBEAT,
            memory_storage: true,
            num_replicas: 1,
            ..push::Config::default()
        };
        bucket.stream.create_consumer(config).await.map_err(of_request)
    };
    let consumer = connection
        .watched(&["CONSUMER.CREATE.", "CONSUMER.DURABLE."], made_consumer)
        .await?;
    let mut session = Session {
        shared,
        bucket: &bucket,
        delivered: 0,
        sequence: from.as_ref().map_or(0, |known| known.sequence),
        complete: false,
    };
    let begin = newest;
    let mut caught_up = consumer.cached_info().num_pending == 0;
    let outcome = loop {
        if caught_up && !session.complete {
            session.complete = true;
            session.sequence = session.sequence.max(begin);
            *complete = true;
            shared.progress.send_replace(Progress::Complete);
            shared.hub.send(TaskChange::Resumed);
        }
        tokio::select! {
            _ = interruptions.changed() => break Err(interrupted("the connection was lost")),
            message = timeout(PATIENCE, messages.next()) => {
                let Ok(Some(message)) = message else {
                    break Err(interrupted("the server is silent"));
                };
                match session.take(&message).await {
                    Ok(nothing_pends) => caught_up |= nothing_pends,
                    Err(error) => break Err(error),
                }
            }
        }
    };
    // What was read up to here need not be read again; a first reading that was broken off has to be.
    if session.complete || from.is_some() {
        *position = Some(Position {
            sequence: session.sequence,
            made,
        });
    }
    outcome
}

fn interrupted(why: &str) -> StoreError {
    unavailable(format!("the change feed was interrupted: {why}"), why)
}

struct Session<'a> {
    shared: &'a Shared,
    bucket: &'a Bucket,
    /// How many messages were delivered.
    delivered: u64,
    /// The newest message of the bucket that was delivered.
    sequence: u64,
    complete: bool,
}

impl Session<'_> {
    /// Takes what the server sent; tells whether nothing more is waiting.
    async fn take(&mut self, message: &Message) -> Result<bool, StoreError> {
        match message.status {
            None => {}
            Some(StatusCode::IDLE_HEARTBEAT) => return self.heartbeat(message).await,
            Some(status) => return Err(interrupted(&format!("the server said {status}"))),
        }
        let delivery = message.reply.as_ref().and_then(|reply| Delivery::parse(reply));
        let Some(delivery) = delivery else {
            return Err(interrupted("a message has no place"));
        };
        if delivery.consumer_sequence != self.delivered + 1 {
            return Err(interrupted("messages are missing"));
        }
        self.delivered = delivery.consumer_sequence;
        self.sequence = delivery.stream_sequence;
        self.apply(message, delivery);
        Ok(delivery.pending == 0)
    }

    async fn heartbeat(&self, message: &Message) -> Result<bool, StoreError> {
        let headers = message.headers.as_ref();
        let stalled = headers.and_then(|headers| headers.get(STALLED));
        let answer = message.reply.as_ref().map(ToString::to_string);
        if let Some(subject) = answer.or_else(|| stalled.map(ToString::to_string)) {
            let answered = self.bucket.client.publish(subject, Default::default()).await;
            answered.map_err(of_request)?;
        }
        let last = headers.and_then(|headers| headers.get(header::NATS_LAST_CONSUMER));
        let last = last.and_then(|last| last.as_str().parse::<u64>().ok());
        match last {
            Some(last) if last != self.delivered => Err(interrupted("messages are missing")),
            // It is sent when nothing else is to be sent.
            Some(_) => Ok(true),
            None => Ok(false),
        }
    }

    fn apply(&self, message: &Message, delivery: Delivery) {
        let Some(key) = message.subject.strip_prefix(self.bucket.subject.as_str()) else {
            return;
        };
        let revision = delivery.stream_sequence;
        let headers = message.headers.as_ref();
        let (version, unclaimed) = if headers.is_some_and(is_marker) {
            let made = Timestamp::from_millis(delivery.nanoseconds / 1_000_000);
            lock(&self.shared.index).note_marker(key, revision, made);
            (None, false)
        } else {
            let marks = headers.map_or_else(Marks::unknown, Marks::read_from);
            lock(&self.shared.index).note(key, revision, marks);
            (marks.version, marks.unclaimed)
        };
        if self.complete
            && let Some(id) = name::id(key)
        {
            let id = TaskId::new(&id);
            self.shared.hub.send(TaskChange::of(id, version, unclaimed));
        }
    }
}
