//! Tasks in a PostgreSQL database.

use std::fmt;
use std::sync::Arc;

use deadpool_postgres::Pool;
use mcp_tasks_core::store::DEFAULT_KEY_PREFIX;
use mcp_tasks_core::{
    CasStore, ChangeFeed, ExpiredLeases, Mutation, StoreError, StoreFuture, Sweep, TaskId, TaskRecord, TaskStore,
    Timestamp, Updated, WriteId,
};

mod backend;
mod database;
mod error;
mod feed;
mod layout;
mod options;
mod scan;
mod tls;

pub use options::PostgresOptions;

use super::defaults::TIMEOUT;
use super::feed::Feed;
use backend::Backend;
use database::{Database, Server};
use feed::Channel;

/// Keeps tasks in a PostgreSQL database, for all nodes that reach it.
///
/// # Guarantees
///
/// * **Durable at commit.** What was acknowledged is there after the server was killed and started again, as far as the
///   server's own settings promise that: `fsync` and `synchronous_commit` are left as they are. A standby that takes over
///   has what it had received.
/// * **One atomic step per update**, across nodes: one conditional statement. Nodes that write to one task at once repeat
///   theirs, with growing and scattered pauses.
/// * **Round trips.** To create, to get, and to update by the node that wrote last: one each, with statements that are prepared
///   once per connection. Any other update reads first.
/// * **Nothing hangs.** Every operation is answered within [`timeout`](PostgresOptions::timeout), connecting and waiting for a
///   connection included, in the worst case by [`StoreError::Unavailable`]. The sweep and the search for abandoned tasks take
///   as much for each part.
/// * **Restarts.** A connection that turns out dead is replaced and its statement repeated; a write is recognised by its id.
/// * **No rights, no such database, a wrong password, a certificate that is not trusted, a full disk** are
///   [`StoreError::Refused`]. No error and no log shows a password.
/// * **The sweep** costs what has expired, finds it by an index, and removes it in short transactions. A record that cannot be
///   read, or that a later release wrote, is left alone, with a warning that names it.
/// * **Tasks of a process that died** are found by an index on their leases, by whichever node looks first.
/// * **Changes** are told between nodes over `LISTEN` and `NOTIFY`, with the write itself, while any node listens.
///
/// # Tables
///
/// `mcp_tasks`, `mcp_tasks_feed` and `mcp_tasks_layout`, in the first schema of the search path, or in the one that is named.
/// The store creates them when it is first used; nodes that start at once take turns. They get along with the tables of others.
/// Deployments with different prefixes (`mcp.tasks.store.key-prefix`) share the tables and not the tasks: the prefix is a
/// column. Tables of a later release are refused and left alone.
///
/// A user that may not create tables needs them to be there, from one start by a user that may, and the rights `USAGE` on the
/// schema and `SELECT, INSERT, UPDATE, DELETE` on the tables.
///
/// The text of a record is kept byte for byte, in a column `text`; the database has to have the encoding UTF8. Ids that hold a
/// NUL or a backslash are written with `\0` and `\\`.
///
/// # Limits
///
/// Tasks are written often, and each write leaves a dead row for autovacuum. While a node listens for changes, PostgreSQL commits
/// writes to tasks one after another, as it does with every transaction that notifies; with nobody listening they share flushes.
/// Tables hold arguments and results as clients sent them: who may read them is up to the rights on them. A pooler in between
/// (PgBouncer) has to keep prepared statements, and `LISTEN` needs a session of its own.
///
/// ```standalone_crate
/// use std::sync::Arc;
/// use mcp_tasks::store::PostgresOptions;
/// use mcp_tasks::TaskRuntime;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = PostgresOptions::new("postgres://app@db.example.com/app?sslmode=verify-full")?
///     .password("from where secrets are kept")
///     .open()?;
/// let runtime = TaskRuntime::builder().store(Arc::new(store)).build()?;
/// # drop(runtime);
/// # Ok(())
/// # }
/// ```
///
/// The same without code: `mcp.tasks.store.url = "postgres://app:password@db.example.com/app?sslmode=verify-full"`.
///
/// Needs tokio, with its timer and its network. Connects when it is first used. Cloning shares the store.
///
/// Cancel safety: a write whose future is dropped is made or not made. The connection it was under way on is closed.
#[derive(Clone)]
pub struct PostgresStore {
    inner: Arc<Inner>,
}

struct Inner {
    tasks: CasStore<Backend>,
    database: Arc<Database>,
    feed: Option<Feed<Channel>>,
}

impl PostgresStore {
    /// The store at `url`, with the default [`PostgresOptions`], which say what a URL may hold. It connects, and sets its tables
    /// up, when it is first used.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if the URL, or a file it names, cannot be used.
    pub fn open(url: &str) -> Result<Self, StoreError> {
        PostgresOptions::new(url)?.open()
    }

    /// A store that takes connections from the application's pool, with everything else as by default. What the pool says of
    /// TLS, passwords and `statement_timeout` counts.
    ///
    /// It has no change feed, because a pooled connection cannot listen: with one, give the URL as well, to
    /// [`PostgresOptions::pool`]. Its writes are told to other nodes all the same.
    #[must_use]
    pub fn with_pool(pool: Pool) -> Self {
        let database = Arc::new(Database::over(pool, None, TIMEOUT));
        Self::over(database, DEFAULT_KEY_PREFIX, None)
    }

    pub(crate) fn with_options(options: PostgresOptions) -> Result<Self, StoreError> {
        let server = Server::new(&options)?;
        let database = Arc::new(Database::new(&server, &options)?);
        let channel = Channel::new(server, database.clone(), &options.prefix, options.timeout);
        Ok(Self::over(database, &options.prefix, Some(Feed::new(channel))))
    }

    fn over(database: Arc<Database>, prefix: &str, feed: Option<Feed<Channel>>) -> Self {
        // The prefix is a column, so that sweeps and scans find their own rows in an index.
        let tasks = CasStore::new(Backend::new(database.clone(), prefix)).with_prefix("");
        Self {
            inner: Arc::new(Inner { tasks, database, feed }),
        }
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("prefix", &self.inner.tasks.backend().prefix)
            .field("database", &self.inner.database)
            .finish_non_exhaustive()
    }
}

impl TaskStore for PostgresStore {
    fn create(&self, record: TaskRecord) -> StoreFuture<'_, Arc<TaskRecord>> {
        Box::pin(self.inner.database.in_time(self.inner.tasks.create(record)))
    }

    fn get<'a>(&'a self, id: &'a TaskId, now: Timestamp) -> StoreFuture<'a, Option<Arc<TaskRecord>>> {
        Box::pin(self.inner.database.in_time(self.inner.tasks.get(id, now)))
    }

    fn update<'a>(
        &'a self,
        id: &'a TaskId,
        now: Timestamp,
        write: WriteId,
        mutation: Mutation,
    ) -> StoreFuture<'a, Option<Updated>> {
        let updating = self.inner.tasks.update(id, now, write, mutation);
        Box::pin(self.inner.database.in_time(updating))
    }

    fn delete<'a>(&'a self, id: &'a TaskId) -> StoreFuture<'a, ()> {
        Box::pin(self.inner.database.in_time(self.inner.tasks.delete(id)))
    }

    fn as_sweep(&self) -> Option<&dyn Sweep> {
        Some(self)
    }

    fn as_expired_leases(&self) -> Option<&dyn ExpiredLeases> {
        Some(self)
    }

    fn as_change_feed(&self) -> Option<&dyn ChangeFeed> {
        self.inner.feed.as_ref().map(|feed| feed as &dyn ChangeFeed)
    }
}

impl ExpiredLeases for PostgresStore {
    fn expired_leases(&self, now: Timestamp, limit: usize) -> StoreFuture<'_, Vec<Arc<TaskRecord>>> {
        Box::pin(scan::expired_leases(self.inner.tasks.backend(), now, limit))
    }
}

impl Sweep for PostgresStore {
    fn sweep(&self, now: Timestamp) -> StoreFuture<'_, u64> {
        Box::pin(scan::sweep(self.inner.tasks.backend(), now))
    }
}
