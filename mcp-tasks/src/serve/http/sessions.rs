//! Sessions of clients of 2025-11-25: how long they are kept, and how many.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{Stream, StreamExt};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::WorkerTransport;
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, LocalSessionWorker,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};
use tokio::time::{Instant, sleep_until};

/// The longest that a session is kept without a stream, whatever is asked for: no client comes back after that, and instants
/// can be reckoned with.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// rmcp's sessions, with an end of our own.
///
/// rmcp ends a session in which nothing was said for a while, also one whose call takes longer than that, and it keeps any
/// number of them, at some 70 KB each: a client that sends nothing but `initialize` would fill the memory. Here a session is
/// kept while a stream of its is open, be it a call's or the one for notifications: a connection of the client's vouches for
/// it. Of the others there is a limited number for a limited time.
pub(super) struct Sessions {
    shared: Arc<Shared>,
}

struct Shared {
    kept: LocalSessionManager,
    /// How long a session is kept without a stream.
    timeout: Duration,
    /// How many sessions are kept without a stream.
    most: usize,
    table: Mutex<Table>,
}

/// Which sessions there are, and which of them nobody vouches for.
#[derive(Debug, Default)]
struct Table {
    sessions: HashMap<SessionId, Session>,
    /// Those without a stream, the one that was heard of least lately first.
    quiet: BTreeMap<u64, SessionId>,
    turn: u64,
    /// Whether somebody looks for those whose time is up.
    is_swept: bool,
}

#[derive(Debug)]
struct Session {
    streams: usize,
    heard: Instant,
    /// Its place in `quiet`.
    turn: u64,
}

impl Table {
    fn create(&mut self, id: &SessionId, now: Instant) {
        let session = Session {
            streams: 0,
            heard: now,
            turn: 0,
        };
        self.sessions.insert(id.clone(), session);
        self.hear(id, now);
    }

    /// The client has sent something.
    fn hear(&mut self, id: &SessionId, now: Instant) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        session.heard = now;
        self.quiet.remove(&session.turn);
        if session.streams == 0 {
            self.turn += 1;
            session.turn = self.turn;
            self.quiet.insert(self.turn, id.clone());
        }
    }

    fn open_stream(&mut self, id: &SessionId, now: Instant) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.streams += 1;
            self.hear(id, now);
        }
    }

    fn close_stream(&mut self, id: &SessionId, now: Instant) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.streams = session.streams.saturating_sub(1);
            self.hear(id, now);
        }
    }

    fn remove(&mut self, id: &SessionId) {
        if let Some(session) = self.sessions.remove(id) {
            self.quiet.remove(&session.turn);
        }
    }

    /// Takes out one more than `most` sessions without a stream, if there is one.
    fn too_many(&mut self, most: usize) -> Option<SessionId> {
        let (_, id) = (self.quiet.len() > most).then(|| self.quiet.first_key_value())??;
        let id = id.clone();
        self.remove(&id);
        Some(id)
    }

    /// Takes out a session that was quiet for long enough. Otherwise the time to look again, if there are sessions.
    fn due(&mut self, timeout: Duration, now: Instant) -> Due {
        let first = self.quiet.first_key_value();
        let Some((id, session)) = first.and_then(|(_, id)| Some((id, self.sessions.get(id)?))) else {
            return if self.sessions.is_empty() {
                Due::Never
            } else {
                Due::At(now + timeout)
            };
        };
        let at = session.heard + timeout;
        if at > now {
            return Due::At(at);
        }
        let id = id.clone();
        self.remove(&id);
        Due::Now(id)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Due {
    Now(SessionId),
    At(Instant),
    Never,
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

impl Sessions {
    /// Keeps `most` sessions without a stream, and each for `timeout`.
    pub(super) fn new(timeout: Duration, most: usize) -> Self {
        let mut kept = LocalSessionManager::default();
        kept.session_config.keep_alive = None;
        Self {
            shared: Arc::new(Shared {
                kept,
                timeout: timeout.min(LONGEST),
                most,
                table: Mutex::default(),
            }),
        }
    }

    /// Vouches for a session until it is dropped.
    fn hold(&self, id: &SessionId) -> Hold {
        self.shared.table().open_stream(id, Instant::now());
        Hold {
            shared: self.shared.clone(),
            id: id.clone(),
        }
    }
}

impl Shared {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a session that is out of the table. Whoever creates one, or looks for the next, does not wait for it.
    fn end(self: &Arc<Self>, id: SessionId) {
        tracing::debug!(session = %id, "a session that nobody vouches for is ended");
        let shared = self.clone();
        tokio::spawn(async move {
            if let Err(error) = shared.kept.close_session(&id).await {
                tracing::debug!(session = %id, %error, "a session has ended by itself");
            }
        });
    }

    /// Ends sessions whose time is up, for as long as there are any.
    fn sweep(self: &Arc<Self>) {
        let shared = Arc::downgrade(self);
        tokio::spawn(async move {
            while let Some(at) = shared.upgrade().and_then(|shared| shared.end_due()) {
                sleep_until(at).await;
            }
        });
    }

    /// Ends the sessions whose time is up. Returns when to look again, unless there are none.
    fn end_due(self: &Arc<Self>) -> Option<Instant> {
        loop {
            let mut table = self.table();
            match table.due(self.timeout, Instant::now()) {
                Due::Now(id) => {
                    drop(table);
                    self.end(id);
                }
                Due::At(at) => return Some(at),
                Due::Never => {
                    table.is_swept = false;
                    return None;
                }
            }
        }
    }
}

/// An open stream of a session's.
struct Hold {
    shared: Arc<Shared>,
    id: SessionId,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.shared.table().close_stream(&self.id, Instant::now());
    }
}

impl Hold {
    /// The stream, which holds this.
    fn on<S: Stream>(self, stream: S) -> impl Stream<Item = S::Item> + use<S> {
        stream.map(move |message| {
            let _ = &self;
            message
        })
    }
}

type Outcome<T> = Result<T, LocalSessionManagerError>;

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = WorkerTransport<LocalSessionWorker>;

    async fn create_session(&self) -> Outcome<(SessionId, Self::Transport)> {
        let (id, transport) = self.shared.kept.create_session().await?;
        let mut table = self.shared.table();
        table.create(&id, Instant::now());
        let too_many = table.too_many(self.shared.most);
        let is_swept = std::mem::replace(&mut table.is_swept, true);
        drop(table);
        if let Some(other) = too_many {
            self.shared.end(other);
        }
        if !is_swept {
            self.shared.sweep();
        }
        Ok((id, transport))
    }

    async fn initialize_session(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Outcome<ServerJsonRpcMessage> {
        self.shared.kept.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Outcome<bool> {
        self.shared.kept.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Outcome<()> {
        self.shared.table().remove(id);
        self.shared.kept.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Outcome<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        let hold = self.hold(id);
        Ok(hold.on(self.shared.kept.create_stream(id, message).await?))
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Outcome<()> {
        self.shared.table().hear(id, Instant::now());
        self.shared.kept.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Outcome<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        let hold = self.hold(id);
        Ok(hold.on(self.shared.kept.create_standalone_stream(id).await?))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Outcome<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        let hold = self.hold(id);
        Ok(hold.on(self.shared.kept.resume(id, last_event_id).await?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(300);

    fn id(text: &str) -> SessionId {
        text.into()
    }

    fn seconds(now: Instant, seconds: u64) -> Instant {
        now + Duration::from_secs(seconds)
    }

    #[test]
    fn a_session_is_due_when_it_was_quiet_for_long_enough() {
        let (mut table, now) = (Table::default(), Instant::now());
        assert_eq!(table.due(TIMEOUT, now), Due::Never);
        table.create(&id("a"), now);
        table.create(&id("b"), seconds(now, 1));
        table.hear(&id("a"), seconds(now, 2));
        table.hear(&id("unknown"), now);
        assert_eq!(table.due(TIMEOUT, seconds(now, 300)), Due::At(seconds(now, 301)));
        assert_eq!(table.due(TIMEOUT, seconds(now, 301)), Due::Now(id("b")));
        assert_eq!(table.due(TIMEOUT, seconds(now, 301)), Due::At(seconds(now, 302)));
        table.remove(&id("a"));
        assert_eq!(table.due(TIMEOUT, seconds(now, 900)), Due::Never);
        assert!(table.quiet.is_empty() && table.sessions.is_empty());
    }

    #[test]
    fn a_session_with_a_stream_is_never_due() {
        let (mut table, now) = (Table::default(), Instant::now());
        table.create(&id("a"), now);
        table.open_stream(&id("a"), now);
        table.open_stream(&id("a"), now);
        table.close_stream(&id("a"), seconds(now, 10));
        table.hear(&id("a"), seconds(now, 20));
        assert_eq!(table.due(TIMEOUT, seconds(now, 9000)), Due::At(seconds(now, 9300)));
        table.close_stream(&id("a"), seconds(now, 9000));
        assert_eq!(table.due(TIMEOUT, seconds(now, 9299)), Due::At(seconds(now, 9300)));
        assert_eq!(table.due(TIMEOUT, seconds(now, 9300)), Due::Now(id("a")));
    }

    #[test]
    fn of_too_many_the_one_that_was_heard_of_least_lately_goes() {
        let (mut table, now) = (Table::default(), Instant::now());
        for name in ["a", "b", "c", "d"] {
            table.create(&id(name), now);
        }
        table.open_stream(&id("a"), now);
        table.hear(&id("b"), now);
        assert_eq!(table.too_many(3), None);
        assert_eq!(table.too_many(2), Some(id("c")));
        assert_eq!(table.too_many(2), None);
        table.close_stream(&id("a"), now);
        assert_eq!(table.too_many(2), Some(id("d")));
        assert_eq!(table.too_many(0), Some(id("b")));
        assert_eq!(table.too_many(0), Some(id("a")));
        assert_eq!(table.too_many(0), None);
    }

    #[tokio::test(start_paused = true)]
    async fn sessions_end_with_their_time_and_so_does_looking_for_them() {
        let sessions = Sessions::new(TIMEOUT, 100);
        for _ in 0..2 {
            let (first, _keeps) = sessions.create_session().await.unwrap();
            let (second, _keeps) = sessions.create_session().await.unwrap();
            let hold = sessions.hold(&second);
            tokio::time::sleep(TIMEOUT * 2).await;
            assert!(!sessions.has_session(&first).await.unwrap());
            assert!(sessions.has_session(&second).await.unwrap());
            drop(hold);
            tokio::time::sleep(TIMEOUT * 2).await;
            assert!(!sessions.has_session(&second).await.unwrap());
            assert!(!sessions.shared.table().is_swept);
        }
    }
}
