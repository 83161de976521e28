//! What has expired, and what no node vouches for, by the index.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use mcp_tasks_core::store::RecordMarks;
use mcp_tasks_core::{StoreError, TaskRecord, Timestamp};

use super::backend::{Backend, Newest};
use super::index::{Place, Time};
use super::name;
use super::watch::Indexed;
use crate::store::failure::warn_unreadable;

/// How many records are taken from the index at a time, so that its lock is held for microseconds.
const PAGE: usize = 128;

/// How many records are looked at at once: a sweep of thousands takes seconds, and leaves the server to others.
const AT_ONCE: usize = 16;

/// How long a mark of deletion stays, so that every process that follows the bucket hears of it.
const MARKED: Duration = Duration::from_secs(60);

/// What a look at a record found.
enum Look {
    Gone,
    Unreadable,
    Found { revision: u64, record: Box<TaskRecord> },
}

/// Looks at a record that the index knows, and has the index know what is there.
async fn look(backend: &Backend, place: &Place) -> Result<Look, StoreError> {
    let key = &*place.key;
    let Some(Newest {
        revision,
        value: Some(value),
    }) = backend.newest(key).await?
    else {
        backend.watcher.forget(key, place.revision);
        return Ok(Look::Gone);
    };
    match TaskRecord::from_slice(&value) {
        Ok(record) => {
            backend.watcher.note(key, revision, RecordMarks::of(&record).into());
            let record = Box::new(record);
            Ok(Look::Found { revision, record })
        }
        Err(error) => {
            let task_id = name::id(key).unwrap_or_else(|| key.to_owned());
            warn_unreadable(&task_id, "the NATS bucket", &error);
            // Until it is written again there is nothing more to learn.
            backend.watcher.forget(key, revision);
            Ok(Look::Unreadable)
        }
    }
}

/// The records whose time has passed, page by page.
struct Pages<'a> {
    indexed: &'a Indexed,
    which: Time,
    now: Timestamp,
    after: Option<(Timestamp, Arc<str>)>,
}

impl<'a> Pages<'a> {
    const fn new(indexed: &'a Indexed, which: Time, now: Timestamp) -> Self {
        Self {
            indexed,
            which,
            now,
            after: None,
        }
    }

    fn next(&mut self) -> Vec<Place> {
        let page = self
            .indexed
            .index()
            .due(self.which, self.now, self.after.as_ref(), PAGE);
        if let Some((last, _)) = page.last() {
            self.after = Some(last.clone());
        }
        page.into_iter().map(|(_, place)| place).collect()
    }
}

pub(super) async fn sweep(backend: &Backend, now: Timestamp) -> Result<u64, StoreError> {
    let indexed = backend.watcher.indexed(backend.connection.options().timeout).await?;
    let mut pages = Pages::new(&indexed, Time::Deadline, now);
    let mut removed = 0;
    loop {
        let page = pages.next();
        if page.is_empty() {
            break;
        }
        let removals = stream::iter(page).map(|place| async move { remove(backend, &place, now).await });
        let removals = removals.buffer_unordered(AT_ONCE);
        removed += removals.try_fold(0, async |sum, one| Ok(sum + u64::from(one))).await?;
    }
    remove_marks(backend, &indexed, now).await?;
    Ok(removed)
}

/// Removes the record if it has expired. The index found it; what decides is the record.
async fn remove(backend: &Backend, place: &Place, now: Timestamp) -> Result<bool, StoreError> {
    match look(backend, place).await? {
        Look::Found { revision, record } if record.is_expired(now) => backend.purge(&place.key, revision).await,
        _ => Ok(false),
    }
}

async fn remove_marks(backend: &Backend, indexed: &Indexed, now: Timestamp) -> Result<(), StoreError> {
    let before = Timestamp::from_millis(now.as_millis().saturating_sub(millis(MARKED)));
    loop {
        let marks = indexed.index().take_markers(before, PAGE);
        if marks.is_empty() {
            return Ok(());
        }
        let mut marks = marks.into_iter();
        while let Some((made, place)) = marks.next() {
            if let Err(error) = backend.purge(&place.key, place.revision).await {
                let mut index = indexed.index();
                for (made, place) in std::iter::once((made, place)).chain(marks) {
                    index.note_marker(&place.key, place.revision, made);
                }
                return Err(error);
            }
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

pub(super) async fn expired_leases(
    backend: &Backend,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Arc<TaskRecord>>, StoreError> {
    let indexed = backend.watcher.indexed(backend.connection.options().timeout).await?;
    let mut pages = Pages::new(&indexed, Time::Lease, now);
    let mut found = Vec::new();
    while found.len() < limit {
        let page = pages.next();
        if page.is_empty() {
            break;
        }
        let looks = stream::iter(page).map(|place| async move { look(backend, &place).await });
        let looks: Vec<Look> = looks.buffer_unordered(AT_ONCE).try_collect().await?;
        found.extend(looks.into_iter().filter_map(|look| match look {
            Look::Found { record, .. } if record.is_abandoned(now) && !record.is_expired(now) => {
                Some(Arc::new(*record))
            }
            _ => None,
        }));
    }
    found.truncate(limit);
    Ok(found)
}
