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

/// The longest that a session is kept without a stream, whatever is configured: no client comes back after that, and an
/// instant that far ahead can be computed.
const MAX_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// rmcp's sessions, ended by rules of our own.
///
/// rmcp ends a session after some time without a message, even while a call takes longer than that. And it keeps any number
/// of sessions, at some 70 KB each: a client that sends nothing but `initialize` would fill the memory. Here a session is kept
/// while one of its streams is open, a call's or the one for notifications. Sessions without a stream are idle: a limited
/// number of them is kept, for a limited time.
pub(super) struct Sessions {
    shared: Arc<SessionState>,
}

struct SessionState {
    rmcp: LocalSessionManager,
    /// How long an idle session is kept.
    timeout: Duration,
    /// How many idle sessions are kept.
    max_idle: usize,
    table: Mutex<SessionTable>,
}

/// All sessions, and which of them are idle.
#[derive(Debug, Default)]
struct SessionTable {
    sessions: HashMap<SessionId, Session>,
    /// The idle ones, the least recently active first.
    idle: BTreeMap<u64, SessionId>,
    last_idle_key: u64,
    /// Whether a background task ends those that expire.
    is_expiring: bool,
}

#[derive(Debug)]
struct Session {
    streams: usize,
    active_at: Instant,
    /// Its key in `idle`.
    idle_key: u64,
}

impl SessionTable {
    fn create(&mut self, id: &SessionId, now: Instant) {
        let session = Session {
            streams: 0,
            active_at: now,
            idle_key: 0,
        };
        self.sessions.insert(id.clone(), session);
        self.touch(id, now);
    }

    /// Notes that the client has sent something.
    fn touch(&mut self, id: &SessionId, now: Instant) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        session.active_at = now;
        self.idle.remove(&session.idle_key);
        if session.streams == 0 {
            self.last_idle_key += 1;
            session.idle_key = self.last_idle_key;
            self.idle.insert(self.last_idle_key, id.clone());
        }
    }

    fn open_stream(&mut self, id: &SessionId, now: Instant) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.streams += 1;
            self.touch(id, now);
        }
    }

    fn close_stream(&mut self, id: &SessionId, now: Instant) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.streams = session.streams.saturating_sub(1);
            self.touch(id, now);
        }
    }

    fn remove(&mut self, id: &SessionId) {
        if let Some(session) = self.sessions.remove(id) {
            self.idle.remove(&session.idle_key);
        }
    }

    /// Removes the least recently active session if more than `max_idle` are idle.
    fn take_excess(&mut self, max_idle: usize) -> Option<SessionId> {
        let (_, id) = (self.idle.len() > max_idle).then(|| self.idle.first_key_value())??;
        let id = id.clone();
        self.remove(&id);
        Some(id)
    }

    /// Removes a session that was idle for `timeout`.
    fn take_expired(&mut self, timeout: Duration, now: Instant) -> Expiry {
        let first = self.idle.first_key_value();
        let Some((id, session)) = first.and_then(|(_, id)| Some((id, self.sessions.get(id)?))) else {
            return if self.sessions.is_empty() {
                Expiry::Never
            } else {
                Expiry::At(now + timeout)
            };
        };
        let at = session.active_at + timeout;
        if at > now {
            return Expiry::At(at);
        }
        let id = id.clone();
        self.remove(&id);
        Expiry::Expired(id)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Expiry {
    /// This session expired, and is removed.
    Expired(SessionId),
    /// The next one to expire does not before this.
    At(Instant),
    /// There are no sessions.
    Never,
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

impl Sessions {
    /// Keeps `max_idle` idle sessions, each for `timeout`.
    pub(super) fn new(timeout: Duration, max_idle: usize) -> Self {
        let mut rmcp = LocalSessionManager::default();
        rmcp.session_config.keep_alive = None;
        Self {
            shared: Arc::new(SessionState {
                rmcp,
                timeout: timeout.min(MAX_TIMEOUT),
                max_idle,
                table: Mutex::default(),
            }),
        }
    }

    /// The session is not idle until what is returned is dropped.
    fn open_stream(&self, id: &SessionId) -> OpenStream {
        self.shared.table().open_stream(id, Instant::now());
        OpenStream {
            shared: self.shared.clone(),
            id: id.clone(),
        }
    }
}

impl SessionState {
    fn table(&self) -> MutexGuard<'_, SessionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a session that was removed from the table, without making the caller wait.
    fn end(self: &Arc<Self>, id: SessionId) {
        tracing::debug!(session = %id, "an idle session is ended");
        let shared = self.clone();
        tokio::spawn(async move {
            if let Err(error) = shared.rmcp.close_session(&id).await {
                tracing::debug!(session = %id, %error, "a session has ended by itself");
            }
        });
    }

    /// Ends sessions as they expire, for as long as there are any.
    fn expire(self: &Arc<Self>) {
        let shared = Arc::downgrade(self);
        tokio::spawn(async move {
            while let Some(at) = shared.upgrade().and_then(|shared| shared.end_expired()) {
                sleep_until(at).await;
            }
        });
    }

    /// Ends the sessions that have expired. Returns when to look again, unless there are no sessions.
    fn end_expired(self: &Arc<Self>) -> Option<Instant> {
        loop {
            let mut table = self.table();
            match table.take_expired(self.timeout, Instant::now()) {
                Expiry::Expired(id) => {
                    drop(table);
                    self.end(id);
                }
                Expiry::At(at) => return Some(at),
                Expiry::Never => {
                    table.is_expiring = false;
                    return None;
                }
            }
        }
    }
}

/// An open stream of a session.
struct OpenStream {
    shared: Arc<SessionState>,
    id: SessionId,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.shared.table().close_stream(&self.id, Instant::now());
    }
}

impl OpenStream {
    /// `stream`, which keeps this until it is dropped.
    fn wrap<S: Stream>(self, stream: S) -> impl Stream<Item = S::Item> + use<S> {
        stream.map(move |message| {
            let _ = &self;
            message
        })
    }
}

type SessionResult<T> = Result<T, LocalSessionManagerError>;

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = WorkerTransport<LocalSessionWorker>;

    async fn create_session(&self) -> SessionResult<(SessionId, Self::Transport)> {
        let (id, transport) = self.shared.rmcp.create_session().await?;
        let mut table = self.shared.table();
        table.create(&id, Instant::now());
        let excess = table.take_excess(self.shared.max_idle);
        let is_expiring = std::mem::replace(&mut table.is_expiring, true);
        drop(table);
        if let Some(other) = excess {
            self.shared.end(other);
        }
        if !is_expiring {
            self.shared.expire();
        }
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> SessionResult<ServerJsonRpcMessage> {
        self.shared.rmcp.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> SessionResult<bool> {
        self.shared.rmcp.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> SessionResult<()> {
        self.shared.table().remove(id);
        self.shared.rmcp.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> SessionResult<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        let stream = self.open_stream(id);
        Ok(stream.wrap(self.shared.rmcp.create_stream(id, message).await?))
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> SessionResult<()> {
        self.shared.table().touch(id, Instant::now());
        self.shared.rmcp.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> SessionResult<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        let stream = self.open_stream(id);
        Ok(stream.wrap(self.shared.rmcp.create_standalone_stream(id).await?))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> SessionResult<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        let stream = self.open_stream(id);
        Ok(stream.wrap(self.shared.rmcp.resume(id, last_event_id).await?))
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
        let (mut table, now) = (SessionTable::default(), Instant::now());
        assert_eq!(table.take_expired(TIMEOUT, now), Expiry::Never);
        table.create(&id("a"), now);
        table.create(&id("b"), seconds(now, 1));
        table.touch(&id("a"), seconds(now, 2));
        table.touch(&id("unknown"), now);
        assert_eq!(
            table.take_expired(TIMEOUT, seconds(now, 300)),
            Expiry::At(seconds(now, 301))
        );
        assert_eq!(table.take_expired(TIMEOUT, seconds(now, 301)), Expiry::Expired(id("b")));
        assert_eq!(
            table.take_expired(TIMEOUT, seconds(now, 301)),
            Expiry::At(seconds(now, 302))
        );
        table.remove(&id("a"));
        assert_eq!(table.take_expired(TIMEOUT, seconds(now, 900)), Expiry::Never);
        assert!(table.idle.is_empty() && table.sessions.is_empty());
    }

    #[test]
    fn a_session_with_a_stream_is_never_due() {
        let (mut table, now) = (SessionTable::default(), Instant::now());
        table.create(&id("a"), now);
        table.open_stream(&id("a"), now);
        table.open_stream(&id("a"), now);
        table.close_stream(&id("a"), seconds(now, 10));
        table.touch(&id("a"), seconds(now, 20));
        assert_eq!(
            table.take_expired(TIMEOUT, seconds(now, 9000)),
            Expiry::At(seconds(now, 9300))
        );
        table.close_stream(&id("a"), seconds(now, 9000));
        assert_eq!(
            table.take_expired(TIMEOUT, seconds(now, 9299)),
            Expiry::At(seconds(now, 9300))
        );
        assert_eq!(
            table.take_expired(TIMEOUT, seconds(now, 9300)),
            Expiry::Expired(id("a"))
        );
    }

    #[test]
    fn of_too_many_the_one_that_was_heard_of_least_lately_goes() {
        let (mut table, now) = (SessionTable::default(), Instant::now());
        for name in ["a", "b", "c", "d"] {
            table.create(&id(name), now);
        }
        table.open_stream(&id("a"), now);
        table.touch(&id("b"), now);
        assert_eq!(table.take_excess(3), None);
        assert_eq!(table.take_excess(2), Some(id("c")));
        assert_eq!(table.take_excess(2), None);
        table.close_stream(&id("a"), now);
        assert_eq!(table.take_excess(2), Some(id("d")));
        assert_eq!(table.take_excess(0), Some(id("b")));
        assert_eq!(table.take_excess(0), Some(id("a")));
        assert_eq!(table.take_excess(0), None);
    }

    #[tokio::test(start_paused = true)]
    async fn sessions_end_with_their_time_and_so_does_looking_for_them() {
        let sessions = Sessions::new(TIMEOUT, 100);
        for _ in 0..2 {
            let (first, _keeps) = sessions.create_session().await.unwrap();
            let (second, _keeps) = sessions.create_session().await.unwrap();
            let stream = sessions.open_stream(&second);
            tokio::time::sleep(TIMEOUT * 2).await;
            assert!(!sessions.has_session(&first).await.unwrap());
            assert!(sessions.has_session(&second).await.unwrap());
            drop(stream);
            tokio::time::sleep(TIMEOUT * 2).await;
            assert!(!sessions.has_session(&second).await.unwrap());
            assert!(!sessions.shared.table().is_expiring);
        }
    }
}
