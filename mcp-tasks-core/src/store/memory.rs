//! The store that keeps tasks in this process.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{ChangeFeed, ChangeHub, ChangeStream, Mutation, StoreFuture, Sweep, TaskChange, TaskStore, Updated};
use crate::{Change, Idle, StoreError, TaskId, TaskRecord, Timestamp, WriteId};

/// How many locks the records are spread over: enough that the cores of a large machine rarely meet, and few enough
/// that an empty store is small.
const SHARDS: usize = 32;

/// Task ids carry their own randomness and nobody else makes them, so the hasher needs no seed.
type Hasher = BuildHasherDefault<DefaultHasher>;

/// Keeps tasks in the memory of this process: they are lost when it ends, and no other process sees them.
///
/// `get` hands out shared data without copying, and no operation waits for another task's. A sweep costs what it
/// removes. For one process that may forget its tasks, and for tests; whoever starts a server on it gets a warning in
/// the log.
///
/// ```
/// use std::sync::Arc;
/// use mcp_tasks_core::{MemoryStore, TaskStore};
///
/// let store: Arc<dyn TaskStore> = Arc::new(MemoryStore::new());
/// assert!(store.as_sweep().is_some());
/// ```
#[derive(Default)]
pub struct MemoryStore {
    shards: [Mutex<Shard>; SHARDS],
    hub: ChangeHub,
}

#[derive(Default)]
struct Shard {
    records: HashMap<TaskId, Arc<TaskRecord>, Hasher>,
    deadlines: BTreeSet<(Timestamp, TaskId)>,
}

impl Shard {
    fn live(&mut self, id: &TaskId, now: Timestamp) -> Option<Arc<TaskRecord>> {
        let record = self.records.get(id)?;
        if record.is_expired(now) {
            self.remove(id);
            return None;
        }
        Some(record.clone())
    }

    fn put(&mut self, record: Arc<TaskRecord>) {
        let id = record.task_id.clone();
        let deadline = record.deadline();
        let before = self.records.insert(id.clone(), record);
        let deadline_before = before.and_then(|record| record.deadline());
        if deadline_before == deadline {
            return;
        }
        if let Some(before) = deadline_before {
            self.deadlines.remove(&(before, id.clone()));
        }
        if let Some(deadline) = deadline {
            self.deadlines.insert((deadline, id));
        }
    }

    fn remove(&mut self, id: &TaskId) {
        if let Some(record) = self.records.remove(id)
            && let Some(deadline) = record.deadline()
        {
            self.deadlines.remove(&(deadline, id.clone()));
        }
    }

    fn sweep(&mut self, now: Timestamp) -> u64 {
        let mut removed = 0;
        while let Some((deadline, _)) = self.deadlines.first()
            && *deadline < now
            && let Some((_, id)) = self.deadlines.pop_first()
        {
            self.records.remove(&id);
            removed += 1;
        }
        removed
    }
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many records are held, expired ones that no sweep has removed yet included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).records.len()).sum()
    }

    /// Whether no record is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// To be called without a shard's lock, as it takes one of its own.
    fn tell(&self, record: &TaskRecord) {
        let unclaimed = record.execution.idle == Some(Idle::Unclaimed);
        let change = TaskChange::of(record.task_id.clone(), Some(record.version), unclaimed);
        self.hub.send(change);
    }

    fn shard(&self, id: &TaskId) -> MutexGuard<'_, Shard> {
        let hash = Hasher::default().hash_one(id);
        // The upper half, as the maps inside use the lower bits of the same hash.
        let at = usize::try_from(hash >> 32).unwrap_or_default() % SHARDS;
        lock(&self.shards[at])
    }
}

/// A mutation that panics has changed nothing, so a poisoned shard is as good as before.
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("len", &self.len()).finish()
    }
}

fn done<'a, T: Send + 'a>(outcome: Result<T, StoreError>) -> StoreFuture<'a, T> {
    Box::pin(std::future::ready(outcome))
}

impl TaskStore for MemoryStore {
    fn create(&self, mut record: TaskRecord) -> StoreFuture<'_, Arc<TaskRecord>> {
        let mut shard = self.shard(&record.task_id);
        if let Some(present) = shard.live(&record.task_id, record.created_at) {
            let same_write = record.last_write.is_some() && present.last_write == record.last_write;
            return done(if same_write {
                Ok(present)
            } else {
                Err(StoreError::AlreadyExists { id: record.task_id })
            });
        }
        record.version = 1;
        let record = Arc::new(record);
        shard.put(record.clone());
        drop(shard);
        self.tell(&record);
        done(Ok(record))
    }

    fn get<'a>(&'a self, id: &'a TaskId, now: Timestamp) -> StoreFuture<'a, Option<Arc<TaskRecord>>> {
        done(Ok(self.shard(id).live(id, now)))
    }

    fn update<'a>(
        &'a self,
        id: &'a TaskId,
        now: Timestamp,
        write: WriteId,
        mutation: Mutation,
    ) -> StoreFuture<'a, Option<Updated>> {
        let mut shard = self.shard(id);
        let Some(present) = shard.live(id, now) else {
            return done(Ok(None));
        };
        if present.last_write == Some(write) {
            return done(Ok(Some(Updated::new(present, true))));
        }
        match mutation(&present) {
            Change::Keep => done(Ok(Some(Updated::new(present, false)))),
            Change::Write(mut next) => {
                next.task_id = present.task_id.clone();
                next.version = present.version.saturating_add(1);
                next.last_write = Some(write);
                let next = Arc::new(*next);
                shard.put(next.clone());
                drop(shard);
                self.tell(&next);
                done(Ok(Some(Updated::new(next, true))))
            }
        }
    }

    fn delete<'a>(&'a self, id: &'a TaskId) -> StoreFuture<'a, ()> {
        self.shard(id).remove(id);
        self.hub.send(TaskChange::of(id.clone(), None, false));
        done(Ok(()))
    }

    fn as_sweep(&self) -> Option<&dyn Sweep> {
        Some(self)
    }

    fn as_change_feed(&self) -> Option<&dyn ChangeFeed> {
        Some(self)
    }
}

impl ChangeFeed for MemoryStore {
    fn changes(&self) -> ChangeStream {
        self.hub.listen()
    }
}

impl Sweep for MemoryStore {
    fn sweep(&self, now: Timestamp) -> StoreFuture<'_, u64> {
        done(Ok(self.shards.iter().map(|shard| lock(shard).sweep(now)).sum()))
    }
}
