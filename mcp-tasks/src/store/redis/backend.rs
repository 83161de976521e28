//! Compare and set: one command or one script, one round trip.

use std::sync::Arc;
use std::time::Duration;

use mcp_tasks_core::store::{CasBackend, CasEntry, CasOutcome, CasVersion, CasWrite, Expect};
use mcp_tasks_core::{RecordError, StoreError, StoreFuture, TaskId};
use redis::RedisResult;

use super::connection::{Connection, Link};
use super::error;
use super::keys::{Keys, split, version_text};
use super::scripts::{COMPARE_AND_SET, REMOVE};
use crate::store::failure::refused;
use crate::store::{message, version};

/// How much longer than its task a record stays in Redis, which counts by its own clock from when a write arrives. Far more
/// than clocks of nodes differ by, so that no node misses a record it holds for live.
const MARGIN: Duration = Duration::from_secs(60);

/// A time to live beyond which Redis would compute an instant that does not fit its 64 bits: some 146 million years.
const LONGEST: u64 = 1 << 62;

/// The largest value that Redis takes.
const LARGEST: usize = 512 << 20;

/// Records in Redis. Keys are ids of tasks; the prefix is put before them here.
#[derive(Debug)]
pub(super) struct RedisBackend {
    link: Arc<Link>,
    keys: Keys,
}

impl RedisBackend {
    pub(super) const fn new(link: Arc<Link>, keys: Keys) -> Self {
        Self { link, keys }
    }

    /// Does `work`, which touches the record. That a key holds no string is a failure of this key and not of the store.
    async fn on_record<T, F, W>(&self, id: &str, work: F) -> Result<T, StoreError>
    where
        F: Fn(Connection) -> W,
        W: Future<Output = RedisResult<T>>,
    {
        let outcome = self.link.run(|connection| {
            let outcome = work(connection);
            async move {
                match outcome.await {
                    Err(error) if error::code(&error) == Some("WRONGTYPE") => Ok(None),
                    outcome => outcome.map(Some),
                }
            }
        });
        let outcome = outcome.await?;
        outcome.ok_or_else(|| unreadable(id, not_a_record("the key holds something that is no string")))
    }
}

fn unreadable(id: &str, source: RecordError) -> StoreError {
    let id = TaskId::new(id);
    StoreError::Unreadable { id, source }
}

/// How long Redis keeps a record whose task has this long.
fn time_to_live(remaining: Duration) -> u64 {
    let millis = u64::try_from(remaining.saturating_add(MARGIN).as_millis()).unwrap_or(LONGEST);
    millis.clamp(1, LONGEST)
}

/// Something is there that this store did not write.
fn not_a_record(what: &str) -> RecordError {
    RecordError::Corrupt(serde::de::Error::custom(what))
}

/// What lies under the key of the task.
pub(super) fn entry(value: &[u8]) -> Result<(u64, &[u8]), RecordError> {
    split(value).ok_or_else(|| not_a_record("the value does not begin with a version"))
}

impl CasBackend for RedisBackend {
    fn get<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<CasEntry>> {
        Box::pin(async move {
            let get = &redis::Cmd::get(self.keys.place(key).record);
            let found = self.on_record(key, |mut connection| async move {
                get.query_async::<Option<Vec<u8>>>(&mut connection).await
            });
            let found = found.await?;
            let Some(mut value) = found else { return Ok(None) };
            let (version, _) = entry(&value).map_err(|source| unreadable(key, source))?;
            value.drain(..super::keys::VERSION);
            Ok(Some(CasEntry::new(value, CasVersion::new(version))))
        })
    }

    fn compare_and_set<'a>(&'a self, key: &'a str, expect: Expect, write: CasWrite<'a>) -> StoreFuture<'a, CasOutcome> {
        Box::pin(async move {
            if write.value.len() >= LARGEST {
                return Err(refused("the record is larger than the 512 MiB that Redis takes"));
            }
            let version = version::random()?;
            let expected = match expect {
                Expect::Absent => String::new(),
                Expect::Version(version) => version_text(version.get()),
            };
            let mut value = version_text(version.get()).into_bytes();
            value.extend_from_slice(write.value);
            let lease = write.marks.lease.map(|until| until.as_millis().to_string());
            let ttl = write.ttl.map(|ttl| time_to_live(ttl).to_string());
            let place = self.keys.place(key);
            let mut script = COMPARE_AND_SET.key(place.record);
            script
                .key(place.leases)
                .arg(expected)
                .arg(value)
                .arg(ttl.unwrap_or_default())
                .arg(lease.unwrap_or_default())
                .arg(key)
                .arg(self.keys.channel())
                .arg(message::write(write.marks, key));
            let script = &script;
            let written = self.on_record(key, |mut connection| async move {
                script.invoke_async::<bool>(&mut connection).await
            });
            Ok(if written.await? {
                CasOutcome::Applied(version)
            } else {
                CasOutcome::Conflict
            })
        })
    }

    fn remove<'a>(&'a self, key: &'a str, version: Option<CasVersion>) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let place = self.keys.place(key);
            let mut script = REMOVE.key(place.record);
            script
                .key(place.leases)
                .arg(version.map(|version| version_text(version.get())).unwrap_or_default())
                .arg(key)
                .arg(self.keys.channel())
                .arg(message::removed(key));
            let script = &script;
            self.link
                .run(|mut connection| async move { script.invoke_async::<bool>(&mut connection).await })
                .await
        })
    }

    fn pause(&self, duration: Duration) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            tokio::time::sleep(duration).await;
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_to_live_is_never_one_that_redis_refuses() {
        let margin = u64::try_from(MARGIN.as_millis()).unwrap();
        assert_eq!(time_to_live(Duration::ZERO), margin);
        assert_eq!(time_to_live(Duration::from_millis(5)), margin + 5);
        assert_eq!(time_to_live(Duration::MAX), LONGEST);
        assert!(
            i64::try_from(LONGEST).unwrap().checked_add(1 << 45).is_some(),
            "with the time of day"
        );
    }
}
