//! Finding what has expired and what no node vouches for, by index.

use std::sync::Arc;

use mcp_tasks_core::{RecordError, StoreError, TaskRecord, Timestamp};
use rusqlite::{Connection, Error, params};

use super::Inner;
use super::rows::{millis, text};
use crate::store::failure::warn_unreadable;

/// How many records go in one write: few enough that a create which comes meanwhile does not feel it.
const PAGE: i64 = 64;

/// A part of the listing: what can be read of it, what cannot, and where the next part begins.
#[derive(Default)]
struct Page {
    records: Vec<TaskRecord>,
    unreadable: Vec<(String, RecordError)>,
    last: Option<(i64, i64)>,
}

/// The rows after a place in the index of deadlines that are over.
const EXPIRED: &str = "SELECT deadline, rowid, id, record FROM tasks \
     WHERE deadline < ?1 AND deadline >= ?2 AND (deadline, rowid) > (?2, ?3) \
     ORDER BY deadline, rowid LIMIT ?4";

/// The rows after a place in the index of leases that are over, of tasks that are there.
const ABANDONED: &str = "SELECT lease, rowid, id, record FROM tasks \
     WHERE lease < ?1 AND lease >= ?2 AND (lease, rowid) > (?2, ?3) AND (deadline IS NULL OR deadline >= ?1) \
     ORDER BY lease, rowid LIMIT ?4";

const START: (i64, i64) = (i64::MIN, i64::MIN);

fn page(connection: &Connection, query: &str, now: Timestamp, after: (i64, i64)) -> Result<Page, Error> {
    let now = millis(now);
    let mut statement = connection.prepare_cached(query)?;
    let mut rows = statement.query(params![now, after.0, after.1, PAGE])?;
    let mut page = Page::default();
    while let Some(row) = rows.next()? {
        page.last = Some((row.get(0)?, row.get(1)?));
        match TaskRecord::from_slice(text(row, 3)?) {
            Ok(record) => page.records.push(record),
            Err(error) => {
                let id = row.get_ref(2)?.as_bytes().unwrap_or_default();
                page.unreadable.push((String::from_utf8_lossy(id).into_owned(), error));
            }
        }
    }
    Ok(page)
}

/// Reads a page beside the writers, and warns of what cannot be read.
async fn next(inner: &Inner, query: &'static str, now: Timestamp, after: (i64, i64)) -> Result<Page, StoreError> {
    let read = move |connection: &Connection| page(connection, query, now, after);
    let page = inner.readers.run(read).await?;
    for (task_id, error) in &page.unreadable {
        warn_unreadable(task_id, "the SQLite file", error);
    }
    Ok(page)
}

/// Removes page by page, so that other writes go in between.
pub(super) async fn sweep(inner: &Inner, now: Timestamp) -> Result<u64, StoreError> {
    let (mut removed, mut after) = (0, START);
    loop {
        let mut page = next(inner, EXPIRED, now, after).await?;
        // The column finds a record; what decides is the record.
        page.records.retain(|record| record.is_expired(now));
        if !page.records.is_empty() {
            removed += inner.writer.run(move |rows| rows.remove(&page.records)).await?;
        }
        match page.last {
            Some(last) => after = last,
            None => return Ok(removed),
        }
    }
}

pub(super) async fn expired_leases(
    inner: &Inner,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Arc<TaskRecord>>, StoreError> {
    let (mut found, mut after) = (Vec::new(), START);
    while found.len() < limit {
        let page = next(inner, ABANDONED, now, after).await?;
        let abandoned = |record: &TaskRecord| record.is_abandoned(now) && !record.is_expired(now);
        found.extend(page.records.into_iter().filter(abandoned).map(Arc::new));
        match page.last {
            Some(last) => after = last,
            None => break,
        }
    }
    found.truncate(limit);
    Ok(found)
}
