//! Connections: made when they are first needed, shared by all operations, and replaced when they are found dead.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_tasks_core::StoreError;
use redis::aio::{ConnectionLike, ConnectionManager, MultiplexedConnection};
use redis::cluster_async::ClusterConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, Pipeline, RedisFuture, RedisResult, Value};
use tokio::time::Instant;

use super::durability;
use super::endpoint::Endpoint;
use super::error::{spoils_connection, store_error, was_dropped};
use crate::store::failure::late;

/// How many commands may wait to be sent. The driver's 50 makes callers queue for a place before they queue for the server.
const WAITING: usize = 1024;

/// A connection over which any number of commands are under way at once.
#[derive(Clone)]
pub(super) enum Connection {
    One(MultiplexedConnection),
    Managed(ConnectionManager),
    Cluster(ClusterConnection),
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::One(connection) => connection.req_packed_command(cmd),
            Self::Managed(connection) => connection.req_packed_command(cmd),
            Self::Cluster(connection) => connection.req_packed_command(cmd),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::One(connection) => connection.req_packed_commands(pipeline, offset, count),
            Self::Managed(connection) => connection.req_packed_commands(pipeline, offset, count),
            Self::Cluster(connection) => connection.req_packed_commands(pipeline, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::One(connection) => connection.get_db(),
            Self::Managed(connection) => connection.get_db(),
            Self::Cluster(connection) => connection.get_db(),
        }
    }
}

/// Runs operations on one connection at a time, each within the time-out.
///
/// Not the driver's connection manager, although an application's own is taken: it stays on a connection whose answers time
/// out, as after a fail-over that left no word, and on a first failure that is not the network's, such as a refused
/// password that is put right later.
pub(super) struct Link {
    endpoint: Endpoint,
    timeout: Duration,
    current: Mutex<Option<(u64, Connection)>>,
    /// Held by whoever connects, so that a crowd makes one connection.
    connecting: tokio::sync::Mutex<()>,
    connections: AtomicU64,
    /// The connection that has answered nobody, and since when it was asked.
    silent: Mutex<Option<(u64, Instant)>>,
    looked_at_durability: AtomicBool,
}

impl Link {
    pub(super) fn new(endpoint: Endpoint, timeout: Duration) -> Self {
        Self {
            endpoint,
            timeout,
            current: Mutex::new(None),
            connecting: tokio::sync::Mutex::new(()),
            connections: AtomicU64::new(0),
            silent: Mutex::new(None),
            looked_at_durability: AtomicBool::new(false),
        }
    }

    pub(super) const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(super) const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Gives `operation`, which may be several round trips, the time that there is.
    pub(super) async fn in_time<T>(
        &self,
        operation: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let outcome = tokio::time::timeout(self.timeout, operation).await;
        outcome.unwrap_or_else(|_| {
            // A connection whose other end has vanished without a word shows itself by nothing else.
            if let Some((number, _)) = *self.silent() {
                self.discard(number);
            }
            Err(late("the Redis server", self.timeout))
        })
    }

    /// Does `work` on the connection, in the time that there is. What it does may be done twice: a connection that turns out
    /// to be dead is replaced, once, and what was sent over it may have arrived.
    pub(super) async fn run<T, F, W>(&self, work: F) -> Result<T, StoreError>
    where
        F: Fn(Connection) -> W,
        W: Future<Output = RedisResult<T>>,
    {
        let attempts = async {
            let mut again = true;
            loop {
                let (number, connection) = self.connection().await.map_err(store_error)?;
                let asked = Asked::on(self, number);
                let outcome = work(connection).await;
                asked.answered();
                let error = match outcome {
                    Ok(done) => return Ok(done),
                    Err(error) => error,
                };
                if spoils_connection(&error) {
                    self.discard(number);
                }
                if !(again && was_dropped(&error)) {
                    return Err(store_error(error));
                }
                again = false;
            }
        };
        self.in_time(attempts).await
    }

    async fn connection(&self) -> RedisResult<(u64, Connection)> {
        if let Some(current) = &*self.current() {
            return Ok(current.clone());
        }
        let _turn = self.connecting.lock().await;
        if let Some(current) = &*self.current() {
            return Ok(current.clone());
        }
        let connection = self.connect().await?;
        let number = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
        *self.current() = Some((number, connection.clone()));
        if !self.looked_at_durability.swap(true, Ordering::Relaxed) {
            tokio::spawn(durability::look(connection.clone(), self.timeout));
        }
        Ok((number, connection))
    }

    async fn connect(&self) -> RedisResult<Connection> {
        match &self.endpoint {
            Endpoint::Server(client) => Ok(Connection::One(connect(client, self.timeout).await?)),
            Endpoint::Managed(_, manager) => Ok(Connection::Managed(manager.clone())),
            Endpoint::Cluster(cluster, _) => Ok(Connection::Cluster(cluster.get_async_connection().await?)),
        }
    }

    fn discard(&self, number: u64) {
        let mut current = self.current();
        if current.as_ref().is_some_and(|(present, _)| *present == number) {
            *current = None;
        }
    }

    fn silent(&self) -> MutexGuard<'_, Option<(u64, Instant)>> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing that holds the lock can panic half-way.
    fn current(&self) -> MutexGuard<'_, Option<(u64, Connection)>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who waits for an answer, and may give up: a caller's patience can be shorter than the time-out, so that only
/// several of them together find out that nobody is answered.
struct Asked<'a> {
    link: &'a Link,
    number: u64,
}

impl<'a> Asked<'a> {
    fn on(link: &'a Link, number: u64) -> Self {
        let mut silent = link.silent();
        if silent.is_none_or(|(present, _)| present != number) {
            *silent = Some((number, Instant::now()));
        }
        Self { link, number }
    }

    fn answered(self) {
        let mut silent = self.link.silent();
        // Another connection, asked since, has yet to answer.
        if silent.is_some_and(|(number, _)| number == self.number) {
            *silent = None;
        }
        drop(silent);
        std::mem::forget(self);
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let silent = *self.link.silent();
        if silent.is_some_and(|(number, since)| number == self.number && since.elapsed() >= self.link.timeout) {
            self.link.discard(self.number);
        }
    }
}

/// Answers are waited for as long as the operation has, which is counted outside.
async fn connect(client: &Client, timeout: Duration) -> RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(timeout))
        .set_response_timeout(None)
        .set_pipeline_buffer_size(WAITING);
    client.get_multiplexed_async_connection_with_config(&config).await
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("endpoint", &self.endpoint)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
