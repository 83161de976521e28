//! Task semantics over compare-and-set, once for all backends that offer nothing better.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Mutation, StoreFuture, Sweep, TaskStore, Updated};
use crate::{Change, StoreError, TaskId, TaskRecord, Timestamp, WriteId};

mod back_off;
mod backend;
mod seen;
mod turns;

pub use backend::{CasBackend, CasEntry, CasExpired, CasOutcome, CasVersion, CasWrite, Expect, RecordMarks};

use back_off::BackOff;
use seen::Seen;
use turns::Turns;

/// Before every key, unless told otherwise.
const PREFIX: &str = "mcp-tasks:";

/// How much of what was last seen is kept, in bytes of records as stored: a few thousand ordinary records, which is more
/// than a node runs at a time, and nothing that an operator would look for.
const REMEMBERED: usize = 8 << 20;

/// How many entries a sweep asks for at a time: few enough that an answer is small, many enough that a round trip is
/// not paid for each.
const PAGE: usize = 128;

/// A [`TaskStore`] over anything that can compare and set.
///
/// An update reads the record, applies the mutation and writes the outcome on the condition that nothing was written
/// meanwhile; where something was, it starts again, with growing and scattered pauses. What it wrote last it remembers, in
/// a few megabytes, and starts from there: the node that executes a task writes its progress in **one** round trip. Updates
/// of one record through one store (or clones of an `Arc` of it) take turns, so only those of other processes conflict.
///
/// Guarantees are those of [`TaskStore`]. Besides:
///
/// * The record's deadline decides whether it is there. The backend is handed the time remaining for its own garbage
///   collection, and none for a task that never expires.
/// * An expired record makes room for a new one under its id, in one conditional write.
/// * A record that cannot be read is left alone, except by `delete`.
/// * Under contention that does not end an update gives up after some 40 attempts, a second or two, with
///   [`StoreError::Unavailable`]; it has not taken effect then.
///
/// Failures of the backend go to the caller at once: the runtime repeats the write under its id, which is recognised.
///
/// Cancel safety: a dropped future leaves the write done or not done. Dropping it between attempts leaves it undone.
pub struct CasStore<B> {
    backend: B,
    prefix: Box<str>,
    seen: Mutex<Seen>,
    turns: Turns,
}

impl<B: CasBackend> CasStore<B> {
    /// A store over `backend`, whose keys are `mcp-tasks:` and the task's id.
    #[must_use]
    pub fn new(backend: B) -> Self {
        Self {
            backend,
            prefix: PREFIX.into(),
            seen: Mutex::new(Seen::new(REMEMBERED)),
            turns: Turns::default(),
        }
    }

    /// Puts `prefix` before every id instead, to keep apart what shares a backend.
    #[must_use]
    pub fn with_prefix(mut self, prefix: &str) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Remembers up to `bytes` of what was last seen; with 0 every update reads first.
    #[must_use]
    pub fn with_memory(mut self, bytes: usize) -> Self {
        self.seen = Mutex::new(Seen::new(bytes));
        self
    }

    /// The backend.
    pub const fn backend(&self) -> &B {
        &self.backend
    }

    fn key(&self, id: &TaskId) -> String {
        format!("{}{id}", self.prefix)
    }

    /// What is remembered was handed out before, so a poisoned lock is as good as any.
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read(&self, key: &str, id: &TaskId) -> Result<Option<Found>, StoreError> {
        let Some(entry) = self.backend.get(key).await? else {
            return Ok(None);
        };
        match TaskRecord::from_slice(&entry.value) {
            Ok(record) => Ok(Some(Found {
                record: Arc::new(record),
                version: entry.version,
                size: entry.value.len(),
            })),
            Err(source) => Err(StoreError::Unreadable { id: id.clone(), source }),
        }
    }

    /// Writes `record` at `now`, if what is there is what is expected.
    async fn write(
        &self,
        key: &str,
        expect: Expect,
        record: TaskRecord,
        now: Timestamp,
    ) -> Result<Option<Found>, StoreError> {
        let text = record.to_json().map_err(|error| StoreError::Refused {
            reason: "the record has no JSON form".to_owned(),
            source: Some(Box::new(error)),
        })?;
        let write = CasWrite {
            value: text.as_bytes(),
            ttl: remaining(&record, now),
            marks: RecordMarks::of(&record),
        };
        let outcome = self.backend.compare_and_set(key, expect, write).await?;
        Ok(match outcome {
            CasOutcome::Applied(version) => Some(Found {
                record: Arc::new(record),
                version,
                size: text.len(),
            }),
            CasOutcome::Conflict => None,
        })
    }

    async fn creating(&self, mut record: TaskRecord) -> Result<Arc<TaskRecord>, StoreError> {
        record.version = 1;
        let id = record.task_id.clone();
        let (key, now) = (self.key(&id), record.created_at);
        let mut back_off = BackOff::new(&self.backend, &id, record.last_write);
        let mut expect = Expect::Absent;
        loop {
            if let Some(created) = self.write(&key, expect, record.clone(), now).await? {
                let mut seen = self.seen();
                seen.forget(&id);
                seen.remember(&created);
                return Ok(created.record);
            }
            expect = match self.read(&key, &id).await? {
                None => Expect::Absent,
                Some(present) if present.record.is_expired(now) => Expect::Version(present.version),
                Some(present) if record.last_write.is_some() && present.record.last_write == record.last_write => {
                    return Ok(present.record);
                }
                Some(_) => return Err(StoreError::AlreadyExists { id }),
            };
            back_off.after_conflict().await?;
        }
    }

    async fn updating(
        &self,
        id: &TaskId,
        now: Timestamp,
        write: WriteId,
        mutation: Mutation,
    ) -> Result<Option<Updated>, StoreError> {
        let key = self.key(id);
        let mut back_off = BackOff::new(&self.backend, id, Some(write));
        let _turn = self.turns.take(id, &self.backend).await?;
        // Only a write from there proves that it is the newest; that it is expired, has this write, or is to be kept
        // has to be read.
        let mut remembered = self
            .seen()
            .get(id)
            .filter(|found| !found.record.is_expired(now) && found.record.last_write != Some(write));
        let mut attempted = false;
        loop {
            let from_memory = remembered.is_some();
            let present = match remembered.take() {
                Some(found) => found,
                None => match self.read(&key, id).await? {
                    // A write of this very call that took effect counts, even where it brought the deadline forward.
                    Some(found) if attempted && found.record.last_write == Some(write) => found,
                    Some(found) if !found.record.is_expired(now) => found,
                    _ => {
                        self.seen().forget(id);
                        return Ok(None);
                    }
                },
            };
            if present.record.last_write == Some(write) {
                self.seen().remember(&present);
                return Ok(Some(Updated::new(present.record, true)));
            }
            let next = match mutation(&present.record) {
                Change::Keep if from_memory => continue,
                Change::Keep => {
                    self.seen().remember(&present);
                    return Ok(Some(Updated::new(present.record, false)));
                }
                Change::Write(mut next) => {
                    next.task_id = id.clone();
                    next.version = present.record.version.saturating_add(1);
                    next.last_write = Some(write);
                    *next
                }
            };
            attempted = true;
            match self.write(&key, Expect::Version(present.version), next, now).await {
                Ok(Some(written)) => {
                    self.seen().remember(&written);
                    return Ok(Some(Updated::new(written.record, true)));
                }
                Ok(None) => self.seen().forget(id),
                Err(error) => {
                    self.seen().forget(id);
                    return Err(error);
                }
            }
            if !from_memory {
                back_off.after_conflict().await?;
            }
        }
    }

    async fn sweeping(&self, listing: &dyn CasExpired, now: Timestamp) -> Result<u64, StoreError> {
        let (mut removed, mut after) = (0, None);
        loop {
            let page = listing.expired(&self.prefix, now, after.as_deref(), PAGE).await?;
            for (key, entry) in &page {
                match TaskRecord::from_slice(&entry.value) {
                    Ok(record) if record.is_expired(now) => {
                        removed += u64::from(self.backend.remove(key, Some(entry.version)).await?);
                        self.seen().forget(&record.task_id);
                    }
                    Ok(_) => {}
                    Err(error) => listing.unreadable(key, &error),
                }
            }
            match page.into_iter().next_back() {
                Some((last, _)) => after = Some(last),
                None => return Ok(removed),
            }
        }
    }
}

/// A record as the backend has it.
#[derive(Debug, Clone)]
struct Found {
    record: Arc<TaskRecord>,
    version: CasVersion,
    /// Its bytes as stored.
    size: usize,
}

/// How long the record still has at `now`. No backend takes a time to live of nothing, hence the millisecond.
fn remaining(record: &TaskRecord, now: Timestamp) -> Option<Duration> {
    let deadline = record.deadline()?;
    Some(deadline.saturating_since(now).max(Duration::from_millis(1)))
}

impl<B: CasBackend> fmt::Debug for CasStore<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CasStore")
            .field("backend", &self.backend)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

impl<B: CasBackend> TaskStore for CasStore<B> {
    fn create(&self, record: TaskRecord) -> StoreFuture<'_, Arc<TaskRecord>> {
        Box::pin(self.creating(record))
    }

    fn get<'a>(&'a self, id: &'a TaskId, now: Timestamp) -> StoreFuture<'a, Option<Arc<TaskRecord>>> {
        Box::pin(async move {
            let found = self.read(&self.key(id), id).await?;
            Ok(found.map(|found| found.record).filter(|record| !record.is_expired(now)))
        })
    }

    fn update<'a>(
        &'a self,
        id: &'a TaskId,
        now: Timestamp,
        write: WriteId,
        mutation: Mutation,
    ) -> StoreFuture<'a, Option<Updated>> {
        Box::pin(self.updating(id, now, write, mutation))
    }

    fn delete<'a>(&'a self, id: &'a TaskId) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            self.seen().forget(id);
            self.backend.remove(&self.key(id), None).await?;
            Ok(())
        })
    }

    fn as_sweep(&self) -> Option<&dyn Sweep> {
        self.backend.as_expired().is_some().then_some(self)
    }
}

impl<B: CasBackend> Sweep for CasStore<B> {
    fn sweep(&self, now: Timestamp) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            match self.backend.as_expired() {
                Some(listing) => self.sweeping(listing, now).await,
                None => Ok(0),
            }
        })
    }
}
