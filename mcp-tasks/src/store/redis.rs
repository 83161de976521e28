//! Tasks on a Redis or Valkey server.

use std::fmt;
use std::sync::Arc;

use mcp_tasks_core::{
    CasStore, ChangeFeed, ChangeStream, ExpiredLeases, Mutation, StoreError, StoreFuture, TaskId, TaskRecord,
    TaskStore, Timestamp, Updated, WriteId,
};

mod backend;
mod connection;
mod durability;
mod endpoint;
mod error;
mod feed;
mod keys;
mod leases;
mod options;
mod scripts;
mod url;

use super::feed::Feed;
use backend::RedisBackend;
use connection::Link;
use feed::Channel;
use keys::Keys;

pub use options::RedisOptions;

/// Keeps tasks on a Redis or Valkey server or cluster: shared by all nodes of a deployment.
///
/// # What an acknowledged write survives
///
/// **That is up to the server's settings, and most are made for a cache.** A write is acknowledged when the server has it:
///
/// * with `appendonly yes` and `appendfsync always` it survives the server being killed and its machine failing; with
///   `appendfsync everysec`, Redis's default for it, the writes of the last second or two go with the machine; without
///   `appendonly` all since the last snapshot go with the process;
/// * **replication is asynchronous**: a replica that takes over may lack the last acknowledged writes, and tasks that clients
///   were told of with them. `min-replicas-to-write` narrows that, and does not end it;
/// * `maxmemory-policy` must be `noeviction`, or a server short of memory removes tasks without a word.
///
/// The store looks at these settings when it first connects, where it may (`CONFIG GET`, `INFO`), and warns in the log. Where
/// no acknowledged task may ever be lost, take a database.
///
/// # Guarantees
///
/// * **One atomic step per update**, across nodes: a script on the server compares the version and writes. All of a task
///   that counts is under one key.
/// * **One round trip** to create a task, to look at one, and for each write of the node that executes it; two for other
///   updates.
/// * **Expiry.** The record's deadline, by the caller's clock, decides whether a task is there. Redis removes the key by
///   itself a minute after that, and later by as much as a write was on its way; no write prolongs it, and nodes' clocks may
///   be apart by seconds without a task going early. There is nothing to sweep. A task that never expires has no time to
///   live in Redis either.
/// * **Nothing hangs.** Every operation is answered within [`timeout`](RedisOptions::timeout), in the worst case by
///   [`StoreError::Unavailable`]; so is each round trip of a search for abandoned tasks, which makes several.
/// * **Connections mend themselves.** An operation that meets a dead connection repeats itself once over a new one; after a
///   restart of the server callers see no error that is not true. A connection that does not answer in time is given up.
/// * **A server that is full** (`maxmemory`), refuses the password or the right to a command, is [`StoreError::Refused`];
///   one that is loading, failing over or out of reach is [`StoreError::Unavailable`].
/// * **Tasks of a node that died** are found by an index on their leases, by whichever node looks first.
/// * **Changes** are heard by all nodes, over pub/sub ([`TaskStore::as_change_feed`]). The connection for that is made when
///   somebody listens.
/// * **Secrets** are neither logged nor in errors nor in `Debug`.
///
/// # How it lies in Redis
///
/// A task is a string, `mcp-tasks:{<0 to 63>}:<id>`: 16 digits of a version, then the record as JSON. The number comes from
/// the id; what it covers lies on one node of a cluster, with the sorted set `mcp-tasks:{<number>}` of the leases that run.
/// Changes are published on `mcp-tasks:changes`. A user limited by access rules needs the keys and the channel (`~mcp-tasks:*
/// &mcp-tasks:*`) and the commands `EVALSHA`, `SCRIPT LOAD`, `EXISTS`, `GET`, `GETRANGE`, `MGET`, `SET`, `DEL`, `ZADD`, `ZREM`,
/// `ZSCORE`, `ZRANGEBYSCORE`, `PUBLISH`, `SUBSCRIBE`, `PING`.
///
/// Redis 5 or later, or Valkey. A cluster's nodes pass messages on to each other and may lose some when a link between them
/// breaks: there listeners are told to look at their tasks every half minute besides. Sentinel is not asked: give the address
/// that follows the primary.
///
/// ```standalone_crate
/// use std::sync::Arc;
/// use mcp_tasks::store::RedisOptions;
/// use mcp_tasks::TaskRuntime;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = RedisOptions::new("redis://localhost:6379")?.key_prefix("reports:").open()?;
/// let runtime = TaskRuntime::builder().store(Arc::new(store)).build()?;
/// # drop(runtime);
/// # Ok(())
/// # }
/// ```
///
/// The same without code: `mcp.tasks.store.url = "redis://localhost:6379"` and `mcp.tasks.store.key-prefix = "reports:"`.
/// For TLS write `rediss://`: the system's certificates count, or those in the file that the environment variable
/// `SSL_CERT_FILE` names. Unless the process has installed a cryptography provider for rustls, the store installs ring's.
///
/// Needs tokio, with its timer and its network. Cloning shares the store.
///
/// Cancel safety: a write whose future is dropped is made, whole, or not made.
#[derive(Clone)]
pub struct RedisStore {
    inner: Arc<Inner>,
}

struct Inner {
    tasks: CasStore<RedisBackend>,
    link: Arc<Link>,
    keys: Keys,
    feed: Feed<Channel>,
}

impl RedisStore {
    /// A store on the server that the URL names, with the default [`RedisOptions`]. Connects to nothing yet: the first
    /// operation does.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if the URL cannot be used.
    pub fn open(url: &str) -> Result<Self, StoreError> {
        RedisOptions::new(url)?.open()
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("servers", self.inner.link.endpoint())
            .field("keys", &self.inner.keys)
            .finish_non_exhaustive()
    }
}

impl TaskStore for RedisStore {
    fn create(&self, record: TaskRecord) -> StoreFuture<'_, Arc<TaskRecord>> {
        Box::pin(self.inner.link.in_time(self.inner.tasks.create(record)))
    }

    fn get<'a>(&'a self, id: &'a TaskId, now: Timestamp) -> StoreFuture<'a, Option<Arc<TaskRecord>>> {
        Box::pin(self.inner.link.in_time(self.inner.tasks.get(id, now)))
    }

    fn update<'a>(
        &'a self,
        id: &'a TaskId,
        now: Timestamp,
        write: WriteId,
        mutation: Mutation,
    ) -> StoreFuture<'a, Option<Updated>> {
        Box::pin(
            self.inner
                .link
                .in_time(self.inner.tasks.update(id, now, write, mutation)),
        )
    }

    fn delete<'a>(&'a self, id: &'a TaskId) -> StoreFuture<'a, ()> {
        Box::pin(self.inner.link.in_time(self.inner.tasks.delete(id)))
    }

    fn as_expired_leases(&self) -> Option<&dyn ExpiredLeases> {
        Some(self)
    }

    fn as_change_feed(&self) -> Option<&dyn ChangeFeed> {
        Some(self)
    }
}

impl ExpiredLeases for RedisStore {
    fn expired_leases(&self, now: Timestamp, limit: usize) -> StoreFuture<'_, Vec<Arc<TaskRecord>>> {
        Box::pin(leases::expired_leases(&self.inner, now, limit))
    }
}

impl ChangeFeed for RedisStore {
    fn changes(&self) -> ChangeStream {
        self.inner.feed.changes()
    }
}
