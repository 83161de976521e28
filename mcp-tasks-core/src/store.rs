//! Where tasks are kept, and what that promises.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use crate::{Change, TaskId, TaskRecord, Timestamp, WriteId};

mod cas;
mod delegate;
mod error;
mod feed;
mod memory;

#[cfg(feature = "contract")]
pub mod contract;

pub use cas::{CasBackend, CasEntry, CasExpired, CasOutcome, CasStore, CasVersion, CasWrite, Expect, RecordMarks};
pub use error::StoreError;
pub use feed::{ChangeFeed, ChangeHub, ChangeStream, TaskChange};
pub use memory::MemoryStore;

/// What keeps the tasks of one deployment apart from those of others in a store that they share, unless it is told otherwise.
pub const DEFAULT_KEY_PREFIX: &str = "mcp-tasks:";

/// What every operation of a store returns.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// What an update makes of the record: a pure function.
pub type Mutation = Arc<dyn Fn(&TaskRecord) -> Change + Send + Sync>;

/// A record after an update.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Updated {
    /// The record as it is now.
    pub record: Arc<TaskRecord>,
    /// Whether this update wrote it; `false` where the mutation said [`Change::Keep`].
    pub applied: bool,
}

impl Updated {
    /// What an update that wrote `record` (`applied`), or left it, returns.
    #[must_use]
    pub const fn new(record: Arc<TaskRecord>, applied: bool) -> Self {
        Self { record, applied }
    }
}

/// Keeps task records.
///
/// The runtime holds an `Arc<dyn TaskStore>`; cloning that shares the store.
///
/// # Contract
///
/// * **Durability.** [`create`](Self::create) and [`update`](Self::update) return once the write is durable: a `get`
///   that starts afterwards, on any node, finds it (Tasks extension, "Task Creation").
/// * **Atomicity.** `update` applies its mutation to the newest record as one step: of two updates one sees the other's
///   result. Everything else (single resume, terminal finality, fencing) follows from that.
/// * **Mutations are pure.** A store may run one several times before it commits, on any thread, and uses the last
///   outcome. On [`Change::Keep`] it writes nothing.
/// * **Stamps.** Whatever the mutation put there, a stored record has the id it had, `version` one above the record it
///   replaces (1 when created) and `last_write` the write's id. The write id of a creation is the `last_write` of the
///   record that is handed in.
/// * **Lost acknowledgements.** A write that took effect but whose acknowledgement was lost is recognised by its write
///   id and not applied again: the repeated call returns the record with `applied` set. A store remembers the last
///   write alone; behind a later write a repeated mutation runs again, and the transitions of a record are made so
///   that this changes nothing (finality, the fence, answered keys that are gone).
/// * **Expiry.** `created_at` plus `ttl_ms` is the only thing that decides whether a record is there, on every
///   operation, and it is there through that very instant. What a backend expires by itself is garbage collection: set
///   to the time remaining, at least 1 ms, never renewed. An expired record is absent: `create` may take its place.
/// * **Time.** The clock is the caller's: `now` in every call, `created_at` in `create`. Nodes' clocks may differ by a
///   few seconds; deadlines shift by as much and nothing else depends on it.
/// * **Content.** JSON members are kept byte for byte: order, numbers of any size, escaped NULs.
/// * **Failure.** An error that [`is_retryable`](StoreError::is_retryable) may have taken effect or not; calling again
///   with the same write id is safe. No operation waits for ever: a store has a time-out of its own.
///
/// Cancel safety: dropping a returned future may leave the write done or not done, never half done.
///
/// The abilities a store may have besides are traits of their own, found through methods such as
/// [`as_sweep`](Self::as_sweep); without them everything works, only slower to notice.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no task store",
    label = "`TaskStore` is not implemented for it",
    note = "implement `TaskStore`, or implement `CasBackend` and wrap it: `CasStore::new(backend)`"
)]
pub trait TaskStore: Send + Sync + fmt::Debug {
    /// Stores a new record.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] when a live record has the id and another write made it.
    fn create(&self, record: TaskRecord) -> StoreFuture<'_, Arc<TaskRecord>>;

    /// The record, or `None` when it is unknown or expired at `now`.
    ///
    /// # Errors
    /// When the backend fails or the stored record cannot be read.
    fn get<'a>(&'a self, id: &'a TaskId, now: Timestamp) -> StoreFuture<'a, Option<Arc<TaskRecord>>>;

    /// Applies `mutation` to the record, or returns `None` when it is unknown or expired at `now`.
    ///
    /// # Errors
    /// When the backend fails or the stored record cannot be read.
    fn update<'a>(
        &'a self,
        id: &'a TaskId,
        now: Timestamp,
        write: WriteId,
        mutation: Mutation,
    ) -> StoreFuture<'a, Option<Updated>>;

    /// Removes the record. Removing what is not there is no error.
    ///
    /// # Errors
    /// When the backend fails.
    fn delete<'a>(&'a self, id: &'a TaskId) -> StoreFuture<'a, ()>;

    /// The ability to remove what has expired, if the store has it.
    fn as_sweep(&self) -> Option<&dyn Sweep> {
        None
    }

    /// The ability to find tasks whose node is gone, if the store has it. A store that no other process can see needs it
    /// not.
    fn as_expired_leases(&self) -> Option<&dyn ExpiredLeases> {
        None
    }

    /// The ability to tell of changes as they are made, if the store has it.
    fn as_change_feed(&self) -> Option<&dyn ChangeFeed> {
        None
    }
}

/// The ability to find tasks that no node vouches for any more. Without it such a task is found when its owner looks at it.
pub trait ExpiredLeases: Send + Sync {
    /// At most `limit` live records that are [abandoned](TaskRecord::is_abandoned) at `now`, in any order. Its cost grows
    /// with what it finds, not with what is stored; a record that cannot be read is skipped with a warning.
    ///
    /// # Errors
    /// When the backend fails.
    fn expired_leases(&self, now: Timestamp, limit: usize) -> StoreFuture<'_, Vec<Arc<TaskRecord>>>;
}

/// The ability to remove expired records on request, for stores whose backend does not do so by itself.
pub trait Sweep: Send + Sync {
    /// Removes records that are expired at `now` and returns how many. Its cost grows with what expired, not with what
    /// is stored; a record that cannot be read is skipped with a warning.
    ///
    /// # Errors
    /// When the backend fails; what was removed until then stays removed.
    fn sweep(&self, now: Timestamp) -> StoreFuture<'_, u64>;
}

/// Pointers to a store are stores: what holds an `Arc<dyn TaskStore>` can be handed on as one.
macro_rules! pointers {
    ($($pointer:ty),+) => {$(
        impl<S: TaskStore + ?Sized> TaskStore for $pointer {
            crate::delegate_task_store! { @pointer }
        }
    )+};
}

pointers!(&S, Box<S>, Arc<S>);
