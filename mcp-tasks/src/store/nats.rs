//! Tasks in a key-value bucket of NATS JetStream.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use futures::Stream;
use mcp_tasks_core::{
    CasStore, ChangeFeed, ChangeStream, ExpiredLeases, Mutation, StoreError, StoreFuture, Sweep, TaskChange, TaskId,
    TaskRecord, TaskStore, Timestamp, Updated, WriteId,
};

mod backend;
mod bucket;
mod connection;
mod delivery;
mod error;
mod index;
mod marks;
mod name;
mod options;
mod scan;
mod tls;
mod watch;

pub use options::NatsOptions;

use backend::Backend;
use connection::Connection;

/// Keeps tasks in a key-value bucket of NATS JetStream: for any number of processes on any number of machines.
///
/// # What an acknowledged write survives
///
/// Every process of the application being killed, and `kill -9` of the NATS server: a write is in the server's file before
/// it is acknowledged. The server flushes its files to the disk every two minutes (`sync_interval`), so **a power cut or a
/// crash of the operating system under a bucket of one replica may take the last writes**, up to that interval, and tasks
/// that clients were told of with them. With [`replicas`](NatsOptions::replicas) of 3 a write is with two servers before it is
/// acknowledged and survives the loss of either; servers from 2.10 on can be told `sync_interval: always`.
///
/// # Guarantees
///
/// * **One atomic step per update**, across all processes: a write names the revision it replaces, and the server refuses it
///   if that is not the newest. A write that the client sends late, after an interruption, therefore changes nothing that
///   came in between.
/// * **One round trip** each for `create`, `get` and an update by the node that wrote last; an update by another node two.
/// * **Nothing hangs.** Every operation is answered within [`timeout`](NatsOptions::timeout), in the worst case by
///   [`StoreError::Unavailable`]; so is each round trip of a sweep or a search for expired leases, which make several.
/// * **Restarts of the server** are mended: the client connects again by itself, a write whose acknowledgement was lost is
///   `Unavailable` and recognised when it is repeated.
/// * **What would fail again is [`StoreError::Refused`]:** no JetStream, a wrong password, a missing right, a record over the
///   server's `max_payload` (1 MiB by default), a full bucket or disk.
/// * **Reads are never stale** while the bucket has a leader: with several replicas they are asked of the leader.
///
/// # The bucket
///
/// The key prefix names it: `mcp-tasks:` is the bucket `mcp-tasks` (the stream `KV_mcp-tasks`), without the `:` at the end; a
/// prefix that has anything but letters, digits, `-` and `_` besides is refused. A key is the task's id, where each byte that
/// is not a letter, digit, `-`, `_` or `/` is `=` and two hexadecimal digits, 512 bytes at most. `nats kv get mcp-tasks <id>`
/// shows a record.
///
/// It is made at first use if it is not there: history of one, in files. One that is there is used as it is. What would lose
/// tasks is refused: a `max_age`, a limit with the discard policy `old`, a mirror, a sealed bucket. Storage in memory, more
/// history and another number of replicas are warned of. Give the bucket no mirror with `mirror_direct`: such a mirror
/// answers reads and may lag.
///
/// A user needs the rights to publish to `$KV.<bucket>.>`, `$JS.API.STREAM.INFO.KV_<bucket>`,
/// `$JS.API.DIRECT.GET.KV_<bucket>.>` and `$JS.API.STREAM.MSG.GET.KV_<bucket>`, for the sweep and the change feed
/// `$JS.API.STREAM.PURGE.KV_<bucket>`, `$JS.API.CONSUMER.CREATE.KV_<bucket>` with `.>` behind it too and `$JS.FC.>`, and, where
/// the bucket is to be made, `$JS.API.STREAM.CREATE.KV_<bucket>`; and to subscribe to `_INBOX.>`, or what
/// [`inbox_prefix`](NatsOptions::inbox_prefix) says.
///
/// # Expired tasks, lost nodes, changes
///
/// A bucket has no index. Each process that sweeps, looks for tasks of lost nodes or listens to changes keeps one in
/// memory, some 300 bytes for each task that has a deadline or a lease. It reads the headers of every task once, when it is
/// first needed, and from then on those of every write of any process; not the records. Until the first reading is done, seconds for a million
/// tasks, a sweep or search waits, and is `Unavailable` if that takes longer than the timeout. A sweep then costs two round trips for
/// what expired, and one where another process was faster; a search for expired leases one for what it finds.
///
/// Deleting leaves a mark, so that other processes hear of it; a sweep removes marks that are older than a minute, so the
/// bucket does not grow with the tasks there were. What the sweep removes leaves none.
///
/// The change feed hears of every write within moments. After an interruption, also of its own reading, it says
/// [`Resumed`](TaskChange::Resumed).
///
/// # Limits
///
/// Servers from 2.9 on. Records are messages: one larger than `max_payload` is refused, and raising that is the operator's.
/// A bucket belongs to one application; it holds arguments and results as clients sent them. The driver logs requests and
/// answers of JetStream's interface at its own debug level (`async_nats`), records of replicated buckets among them; its
/// passwords it does not log.
///
/// ```standalone_crate
/// use std::sync::Arc;
/// use mcp_tasks::store::NatsStore;
/// use mcp_tasks::TaskRuntime;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = NatsStore::open("nats://nats.internal?replicas=3")?;
/// let runtime = TaskRuntime::builder().store(Arc::new(store)).build()?;
/// # drop(runtime);
/// # Ok(())
/// # }
/// ```
///
/// The same without code: `mcp.tasks.store.url = "nats://nats.internal?replicas=3"`. [`NatsOptions`] has what else there is, and
/// takes a connection that the application has.
///
/// Needs tokio, with its timer and its network. It connects when it is first used, and when that fails, at each further
/// use. Cloning shares the store; the connection ends with the last clone, and so do the streams of its change feed.
///
/// Cancel safety: a write whose future is dropped is made, whole, or not made.
#[derive(Clone)]
pub struct NatsStore {
    inner: Arc<Inner>,
}

struct Inner {
    tasks: CasStore<Backend>,
}

impl NatsStore {
    /// The store at a URL, with everything else as by default; see [`NatsOptions::new`] for what it may say. Connects when it
    /// is first used.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if the URL cannot be used.
    pub fn open(url: &str) -> Result<Self, StoreError> {
        NatsOptions::new(url)?.open()
    }

    fn new(options: NatsOptions, bucket: String) -> Self {
        let backend = Backend::new(Arc::new(Connection::new(options, bucket)));
        // The bucket is the prefix.
        let tasks = CasStore::new(backend).with_prefix("");
        Self {
            inner: Arc::new(Inner { tasks }),
        }
    }

    /// The bucket.
    #[must_use]
    pub fn bucket(&self) -> &str {
        self.inner.backend().connection.bucket_name()
    }
}

impl Inner {
    const fn backend(&self) -> &Backend {
        self.tasks.backend()
    }

    /// Bounds an operation that may be several round trips.
    async fn in_time<T>(&self, work: StoreFuture<'_, T>) -> Result<T, StoreError> {
        let limit = self.backend().connection.options().timeout;
        let outcome = tokio::time::timeout(limit, work).await;
        outcome.unwrap_or_else(|_| Err(error::late(limit)))
    }
}

impl fmt::Debug for NatsStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let connection = &self.inner.backend().connection;
        f.debug_struct("NatsStore")
            .field("servers", &connection.options().servers())
            .field("bucket", &connection.bucket_name())
            .finish_non_exhaustive()
    }
}

impl TaskStore for NatsStore {
    fn create(&self, record: TaskRecord) -> StoreFuture<'_, Arc<TaskRecord>> {
        Box::pin(self.inner.in_time(self.inner.tasks.create(record)))
    }

    fn get<'a>(&'a self, id: &'a TaskId, now: Timestamp) -> StoreFuture<'a, Option<Arc<TaskRecord>>> {
        Box::pin(self.inner.in_time(self.inner.tasks.get(id, now)))
    }

    fn update<'a>(
        &'a self,
        id: &'a TaskId,
        now: Timestamp,
        write: WriteId,
        mutation: Mutation,
    ) -> StoreFuture<'a, Option<Updated>> {
        Box::pin(self.inner.in_time(self.inner.tasks.update(id, now, write, mutation)))
    }

    fn delete<'a>(&'a self, id: &'a TaskId) -> StoreFuture<'a, ()> {
        Box::pin(self.inner.in_time(self.inner.tasks.delete(id)))
    }

    fn as_sweep(&self) -> Option<&dyn Sweep> {
        Some(self)
    }

    fn as_expired_leases(&self) -> Option<&dyn ExpiredLeases> {
        Some(self)
    }

    fn as_change_feed(&self) -> Option<&dyn ChangeFeed> {
        Some(self)
    }
}

impl Sweep for NatsStore {
    fn sweep(&self, now: Timestamp) -> StoreFuture<'_, u64> {
        Box::pin(scan::sweep(self.inner.backend(), now))
    }
}

impl ExpiredLeases for NatsStore {
    fn expired_leases(&self, now: Timestamp, limit: usize) -> StoreFuture<'_, Vec<Arc<TaskRecord>>> {
        Box::pin(scan::expired_leases(self.inner.backend(), now, limit))
    }
}

impl ChangeFeed for NatsStore {
    /// Following begins when the stream is first polled, as that is inside tokio.
    fn changes(&self) -> ChangeStream {
        Box::pin(Changes::Waiting(Arc::downgrade(&self.inner)))
    }
}

/// A stream of changes that begins with its first poll, and does not keep its store.
enum Changes {
    Waiting(Weak<Inner>),
    Listening(ChangeStream),
}

impl Stream for Changes {
    type Item = TaskChange;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<TaskChange>> {
        if let Self::Waiting(store) = &*self {
            let Some(store) = store.upgrade() else {
                return Poll::Ready(None);
            };
            *self = Self::Listening(store.backend().watcher.listen());
        }
        match &mut *self {
            Self::Listening(changes) => changes.as_mut().poll_next(context),
            Self::Waiting(_) => Poll::Ready(None),
        }
    }
}
