//! Removing what has expired.

use mcp_tasks_core::{RecordError, StoreError, TaskRecord, Timestamp};
use rusqlite::{Connection, Error, params};

use super::Inner;
use super::rows::Stored;

/// How many records go in one write: few enough that a create which comes meanwhile does not feel it.
const PAGE: i64 = 64;

/// A part of the listing: what can be read of it, what cannot, and where the next part begins.
#[derive(Default)]
struct Page {
    records: Vec<TaskRecord>,
    unreadable: Vec<(String, RecordError)>,
    last: Option<(i64, i64)>,
}

/// The next rows after a place in the index whose deadline has passed.
fn page(connection: &Connection, now: Timestamp, after: (i64, i64)) -> Result<Page, Error> {
    let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(
        "SELECT deadline, rowid, id, record FROM tasks \
         WHERE deadline < ?1 AND deadline >= ?2 AND (deadline, rowid) > (?2, ?3) \
         ORDER BY deadline, rowid LIMIT ?4",
    )?;
    let mut rows = statement.query(params![now, after.0, after.1, PAGE])?;
    let mut page = Page::default();
    while let Some(row) = rows.next()? {
        page.last = Some((row.get(0)?, row.get(1)?));
        match Stored::from_row(row, 3)?.parse() {
            Ok(record) => page.records.push(record),
            Err(error) => {
                let id = row.get_ref(2)?.as_bytes().unwrap_or_default();
                page.unreadable.push((String::from_utf8_lossy(id).into_owned(), error));
            }
        }
    }
    Ok(page)
}

/// Reads beside the writers and removes page by page, so that other writes go in between.
pub(super) async fn sweep(inner: &Inner, now: Timestamp) -> Result<u64, StoreError> {
    let (mut removed, mut after) = (0, (i64::MIN, i64::MIN));
    loop {
        let mut page = inner
            .readers
            .run(move |connection| page(connection, now, after))
            .await?;
        for (task_id, error) in &page.unreadable {
            tracing::warn!(
                task_id,
                error = %crate::engine::error_chain(error),
                "an expired task cannot be read; it is left in the SQLite file"
            );
        }
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
