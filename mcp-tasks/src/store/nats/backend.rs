//! Compare-and-set by the revisions of a bucket.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{DirectGetErrorKind, LastRawMessageErrorKind};
use async_nats::{HeaderMap, HeaderValue, header};
use mcp_tasks_core::store::{CasEntry, CasOutcome, CasVersion, CasWrite, Expect};
use mcp_tasks_core::{CasBackend, StoreError, StoreFuture};

use super::bucket::Bucket;
use super::connection::Connection;
use super::error::{WriteFailure, of_publishing, of_request, refused};
use super::marks::{Marks, OPERATION, PURGE, is_marker};
use super::name;
use super::watch::Watcher;

/// Removes what was under the subject before the message that carries it.
const ROLL_UP: &str = "sub";

/// How often a deletion looks again because others write to the record meanwhile: each of them wins once.
const ATTEMPTS: u32 = 40;

/// How often a write that nobody takes is offered, and the pause between: half a second in all, in which a bucket that was made
/// is ready.
const OFFERS: u32 = 11;
const BETWEEN_OFFERS: Duration = Duration::from_millis(50);

#[derive(Clone)]
pub(super) struct Backend {
    pub(super) connection: Arc<Connection>,
    pub(super) watcher: Arc<Watcher>,
}

/// The newest message under a key.
pub(super) struct Newest {
    pub(super) revision: u64,
    /// `None` for a mark of deletion.
    pub(super) value: Option<Vec<u8>>,
}

impl Backend {
    pub(super) fn new(connection: Arc<Connection>) -> Self {
        let watcher = Arc::new(Watcher::new(connection.clone()));
        Self { connection, watcher }
    }

    /// Works on the bucket. What fails for want of an answer has it looked for again the next time.
    async fn on_bucket<T, W>(&self, subjects: &[&str], work: impl FnOnce(Arc<Bucket>) -> W) -> Result<T, StoreError>
    where
        W: Future<Output = Result<T, StoreError>>,
    {
        let bucket = self.connection.bucket().await?;
        let outcome = self.connection.watched(subjects, work(bucket)).await;
        if let Err(StoreError::Unavailable { source: Some(_), .. }) = &outcome {
            self.connection.forget_bucket();
        }
        outcome
    }

    pub(super) async fn newest(&self, key: &str) -> Result<Option<Newest>, StoreError> {
        self.on_bucket(&["DIRECT.GET.", "STREAM.MSG.GET."], |bucket| async move {
            let subject = bucket.stored(key);
            // Of several replicas one that lags might answer a direct read; the leader answers the other kind.
            let message = if bucket.direct {
                match bucket.stream.direct_get_last_for_subject(subject).await {
                    Ok(message) => Some(message),
                    Err(error) if error.kind() == DirectGetErrorKind::NotFound => None,
                    Err(error) => return Err(of_request(error)),
                }
            } else {
                match bucket.stream.get_last_raw_message_by_subject(&subject).await {
                    Ok(message) => Some(message),
                    Err(error) => match error.kind() {
                        LastRawMessageErrorKind::NoMessageFound => None,
                        LastRawMessageErrorKind::JetStream(cause) => return Err(super::error::of_jetstream(&cause)),
                        _ => return Err(of_request(error)),
                    },
                }
            };
            Ok(message.map(Newest::from))
        })
        .await
    }

    /// Writes if the newest message under the key is this one; returns the new revision, or `None` on a conflict.
    ///
    /// A bucket shows some moments before it takes messages, when it is made and when it changes its leader, and is made
    /// again when it was removed: what nobody took is offered again. Headers are made for each offer, as to copy them costs
    /// more.
    async fn publish(
        &self,
        key: &str,
        headers: impl Fn(&mut HeaderMap) + Send + Sync,
        value: &[u8],
        expected: u64,
    ) -> Result<Option<u64>, StoreError> {
        let mut offers = 0;
        loop {
            offers += 1;
            let mut made = HeaderMap::new();
            headers(&mut made);
            made.insert(header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, HeaderValue::from(expected));
            match self.offer(key, made, value).await? {
                Ok(revision) => return Ok(Some(revision)),
                Err(WriteFailure::Conflict) => return Ok(None),
                Err(WriteFailure::Nobody(_)) if offers < OFFERS => {
                    self.connection.forget_bucket();
                    tokio::time::sleep(BETWEEN_OFFERS).await;
                }
                Err(WriteFailure::Nobody(error) | WriteFailure::Failed(error)) => {
                    self.connection.forget_bucket();
                    return Err(error);
                }
            }
        }
    }

    async fn offer(
        &self,
        key: &str,
        headers: HeaderMap,
        value: &[u8],
    ) -> Result<Result<u64, WriteFailure>, StoreError> {
        let subject = format!("$KV.{}.", self.connection.bucket_name());
        self.on_bucket(&[&subject], |bucket| async move {
            let subject = bucket.published(key);
            let sent = bucket
                .context
                .publish_with_headers(subject, headers, value.to_vec().into())
                .await;
            let confirmed = match sent {
                Ok(confirmation) => confirmation.await,
                Err(error) => Err(error),
            };
            Ok(confirmed.map(|confirmed| confirmed.sequence).map_err(of_publishing))
        })
        .await
    }

    /// Removes this state of the key and whatever was before it, leaving no trace. A later state stays.
    pub(super) async fn purge(&self, key: &str, revision: u64) -> Result<bool, StoreError> {
        let removed = self
            .on_bucket(&["STREAM.PURGE."], |bucket| async move {
                let purge = bucket.stream.purge().filter(bucket.stored(key));
                let purged = purge.sequence(revision.saturating_add(1)).await;
                Ok(purged.map_err(of_purging)?.purged > 0)
            })
            .await?;
        self.watcher.forget(key, revision);
        Ok(removed)
    }

    /// Marks the key as deleted, so that whoever watches hears of it. The sweep removes the mark.
    async fn delete(&self, key: &str) -> Result<bool, StoreError> {
        for _ in 0..ATTEMPTS {
            let Some(newest) = self.newest(key).await? else {
                return Ok(false);
            };
            if newest.value.is_none() {
                return Ok(false);
            }
            let headers = |headers: &mut HeaderMap| {
                headers.insert(OPERATION, PURGE);
                headers.insert(header::NATS_ROLLUP, ROLL_UP);
            };
            if let Some(revision) = self.publish(key, headers, &[], newest.revision).await? {
                self.watcher.forget(key, revision);
                return Ok(true);
            }
        }
        Err(StoreError::Unavailable {
            reason: format!("others wrote to the task first, {ATTEMPTS} times in a row"),
            source: None,
        })
    }

    async fn set(&self, id: &str, expect: Expect, write: CasWrite<'_>) -> Result<CasOutcome, StoreError> {
        let Some(key) = name::key(id) else {
            return Err(refused("the task's id is longer than a key of a NATS bucket may be"));
        };
        let marks = Marks::from(write.marks);
        let headers = |headers: &mut HeaderMap| marks.write_to(headers);
        let expected = match expect {
            Expect::Absent => 0,
            Expect::Version(version) => version.get(),
        };
        let mut written = self.publish(&key, headers, write.value, expected).await?;
        if written.is_none() && expect == Expect::Absent {
            // A mark of deletion is there, perhaps; it counts as nothing.
            if let Some(Newest { revision, value: None }) = self.newest(&key).await? {
                written = self.publish(&key, headers, write.value, revision).await?;
            }
        }
        let Some(revision) = written else {
            return Ok(CasOutcome::Conflict);
        };
        self.watcher.note(&key, revision, marks);
        Ok(CasOutcome::Applied(CasVersion::new(revision)))
    }
}

type PurgeError = async_nats::jetstream::stream::PurgeError;

fn of_purging(error: PurgeError) -> StoreError {
    match error.kind() {
        async_nats::jetstream::stream::PurgeErrorKind::JetStream(cause) => super::error::of_jetstream(&cause),
        _ => of_request(error),
    }
}

impl From<StreamMessage> for Newest {
    fn from(message: StreamMessage) -> Self {
        let value = (!is_marker(&message.headers)).then(|| message.payload.to_vec());
        Self {
            revision: message.sequence,
            value,
        }
    }
}

impl std::fmt::Debug for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backend")
            .field("bucket", &self.connection.bucket_name())
            .finish_non_exhaustive()
    }
}

impl CasBackend for Backend {
    fn get<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<CasEntry>> {
        Box::pin(async move {
            // An id too long for a key was never stored.
            let Some(key) = name::key(key) else { return Ok(None) };
            let newest = self.newest(&key).await?;
            Ok(newest.and_then(|newest| Some(CasEntry::new(newest.value?, CasVersion::new(newest.revision)))))
        })
    }

    fn compare_and_set<'a>(&'a self, key: &'a str, expect: Expect, write: CasWrite<'a>) -> StoreFuture<'a, CasOutcome> {
        Box::pin(self.set(key, expect, write))
    }

    fn remove<'a>(&'a self, key: &'a str, version: Option<CasVersion>) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let Some(key) = name::key(key) else { return Ok(false) };
            match version {
                Some(version) => self.purge(&key, version.get()).await,
                None => self.delete(&key).await,
            }
        })
    }

    fn pause(&self, duration: Duration) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            tokio::time::sleep(duration).await;
            Ok(())
        })
    }
}
