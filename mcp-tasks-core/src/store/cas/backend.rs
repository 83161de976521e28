//! What a backend has to offer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::store::StoreFuture;
use crate::{Idle, RecordError, TaskRecord, TaskStatus, Timestamp};

/// A backend's name for one state of one key. Only equality counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CasVersion(u64);

impl CasVersion {
    /// The version with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// What has to be there for a write to take place.
///
/// There is no third case, "whatever is there": a write that does not look is how updates are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(
    clippy::exhaustive_enums,
    reason = "a third case would be a promise no existing backend makes"
)]
pub enum Expect {
    /// Nothing.
    Absent,
    /// This state of the key, and no other.
    Version(CasVersion),
}

/// What became of a conditional write. Everything else is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
#[allow(clippy::exhaustive_enums, reason = "whoever compares and sets has these two answers")]
pub enum CasOutcome {
    /// It is written and durable, under this version.
    Applied(CasVersion),
    /// Something else is there, and nothing was written.
    Conflict,
}

/// A value and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CasEntry {
    /// The bytes as they were written.
    pub value: Vec<u8>,
    /// Which state of the key they are.
    pub version: CasVersion,
}

impl CasEntry {
    /// A value with its version.
    #[must_use]
    pub const fn new(value: Vec<u8>, version: CasVersion) -> Self {
        Self { value, version }
    }
}

/// What is to be written.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CasWrite<'a> {
    /// The bytes: a record as compact JSON, without raw NUL.
    pub value: &'a [u8],
    /// After how long the backend may remove the key by itself, counted from now and at least a millisecond; `None` means
    /// never. Each write replaces what the one before said.
    pub ttl: Option<Duration>,
    /// What a backend may keep beside the bytes, so that an index of its own finds them.
    pub marks: RecordMarks,
}

impl<'a> CasWrite<'a> {
    /// These bytes, for this long, of a record with these marks.
    #[must_use]
    pub const fn new(value: &'a [u8], ttl: Option<Duration>, marks: RecordMarks) -> Self {
        Self { value, ttl, marks }
    }
}

/// When a record wants to be looked at, and which version of it this is: what a store keeps beside a record so that an index
/// finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RecordMarks {
    /// The record's version.
    pub version: u64,
    /// After which it is expired; `None` means never.
    pub deadline: Option<Timestamp>,
    /// After which no node vouches for it; `None` if it does not work, or was never claimed.
    pub lease: Option<Timestamp>,
    /// Whether it was left to whichever node takes it on first, which wants to be told at once.
    pub unclaimed: bool,
}

impl RecordMarks {
    /// The marks of a record.
    #[must_use]
    pub fn of(record: &TaskRecord) -> Self {
        let lease = record.execution.lease_until;
        Self {
            version: record.version,
            deadline: record.deadline(),
            lease: lease.filter(|_| record.status == TaskStatus::Working),
            unclaimed: record.execution.idle == Some(Idle::Unclaimed),
        }
    }
}

/// A place for bytes under keys that can compare and set: what [`CasStore`](super::CasStore) needs of a database.
///
/// # Contract
///
/// * **Keys** are any text, up to the length of an id that a client made up. What a database cannot take as a key is
///   encoded so that different keys stay different.
/// * **One step.** [`compare_and_set`](Self::compare_and_set) compares and writes as one atomic step on the newest state of
///   the key: of two with the same expectation at most one is applied.
/// * **Durability.** `Applied` means durable: every `get` that starts afterwards, on any node, finds this write or a later
///   one. A replica that may lag does not serve `get`.
/// * **Versions.** Two states of a key never have one version, not even when the key was removed in between or expired: a
///   counter of the whole database is right, so are 64 random bits, a counter kept in the value is not.
/// * **Time to live** is garbage collection: a key may stay longer, and must not go earlier. Where a database counts in
///   seconds, round up. A key that has expired is absent in every respect. A database that has no such thing ignores it and
///   offers [`as_expired`](Self::as_expired).
/// * **Failure.** [`Unavailable`](crate::StoreError::Unavailable) means: perhaps done, perhaps not. The write is recognised
///   by what is in it when it is repeated, so a driver that repeats by itself after a lost answer does no harm: it answers
///   `Conflict` to its own write, and the store finds that the write is there.
///   [`Refused`](crate::StoreError::Refused) is for what would fail again.
/// * **No operation waits for ever:** connecting, sending and receiving have time-outs, of seconds.
/// * **Cloning** a handle, where it is possible, shares the database.
///
/// Cancel safety: dropping a returned future may leave the operation done or not done, and the connection usable.
///
/// A backend does not know what a task is. What it is told about expired entries ([`CasExpired`]) and for an index
/// ([`RecordMarks`]) are the exceptions.
pub trait CasBackend: Send + Sync + fmt::Debug {
    /// The newest value of the key.
    ///
    /// # Errors
    /// When the database fails.
    fn get<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<CasEntry>>;

    /// Writes if what is there is what is expected.
    ///
    /// # Errors
    /// When the database fails; the write may have taken place if the error is retryable.
    fn compare_and_set<'a>(&'a self, key: &'a str, expect: Expect, write: CasWrite<'a>) -> StoreFuture<'a, CasOutcome>;

    /// Removes the key, given a version only that state of it. Returns whether something was removed; removing what is
    /// not there is no error.
    ///
    /// # Errors
    /// When the database fails.
    fn remove<'a>(&'a self, key: &'a str, version: Option<CasVersion>) -> StoreFuture<'a, bool>;

    /// Resolves after about `duration`: `tokio::time::sleep(duration)`, or that of another runtime. It is how the store
    /// waits between attempts, as this crate has no clock; the scatter is in `duration` already.
    ///
    /// # Errors
    /// None are expected; one ends the update that waits.
    fn pause(&self, duration: Duration) -> StoreFuture<'_, ()>;

    /// The ability to list what may have expired, for a database that does not remove it by itself.
    fn as_expired(&self) -> Option<&dyn CasExpired> {
        None
    }
}

/// The ability to list entries that may have expired, so that the store's sweep can remove them.
pub trait CasExpired: Send + Sync {
    /// Up to `limit` entries in the order of their keys, those that begin with `prefix` and come after `after`, among
    /// them all whose time to live had passed at `now`. Others do no harm, as the store looks at each record's deadline,
    /// but each costs its transfer. An empty answer ends the listing.
    ///
    /// # Errors
    /// When the database fails.
    fn expired<'a>(
        &'a self,
        prefix: &'a str,
        now: Timestamp,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(String, CasEntry)>>;

    /// Is told of an entry that cannot be read, which stays as it is: log a warning that names the key.
    fn unreadable(&self, key: &str, error: &RecordError);
}

/// Pointers to a backend are backends: two stores can share one.
macro_rules! forward {
    ($($pointer:ty),+) => {$(
        impl<B: CasBackend + ?Sized> CasBackend for $pointer {
            fn get<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<CasEntry>> {
                (**self).get(key)
            }

            fn compare_and_set<'a>(
                &'a self,
                key: &'a str,
                expect: Expect,
                write: CasWrite<'a>,
            ) -> StoreFuture<'a, CasOutcome> {
                (**self).compare_and_set(key, expect, write)
            }

            fn remove<'a>(&'a self, key: &'a str, version: Option<CasVersion>) -> StoreFuture<'a, bool> {
                (**self).remove(key, version)
            }

            fn pause(&self, duration: Duration) -> StoreFuture<'_, ()> {
                (**self).pause(duration)
            }

            fn as_expired(&self) -> Option<&dyn CasExpired> {
                (**self).as_expired()
            }
        }
    )+};
}

forward!(&B, Box<B>, Arc<B>);
