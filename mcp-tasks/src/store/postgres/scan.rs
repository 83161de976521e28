//! Finding what has expired and what no node vouches for, by index.

use std::sync::Arc;

use mcp_tasks_core::{RecordError, StoreError, TaskRecord, Timestamp};

use super::backend::{Backend, column, millis};
use crate::store::failure::warn_unreadable;

/// How many rows are read and removed at a time: few enough that a transaction is short and its locks are gone at once, many
/// enough that a round trip is not paid for each.
const PAGE: i64 = 128;

/// A part of the listing: what can be read of it, what cannot, and where the next part begins.
#[derive(Default)]
struct Page {
    records: Vec<Row>,
    unreadable: Vec<(String, RecordError)>,
    last: Option<(i64, String)>,
}

/// A record and which state of the row it is.
struct Row {
    id: String,
    revision: i64,
    record: TaskRecord,
}

/// Where a listing begins: before every deadline and lease.
fn start() -> (i64, String) {
    (i64::MIN, String::new())
}

/// Reads a page after `after`, in the order of `column`, and warns of what cannot be read.
async fn page(backend: &Backend, which: &str, now: Timestamp, after: &(i64, String)) -> Result<Page, StoreError> {
    let tasks = &backend.database.names.tasks;
    let sql = format!(
        "SELECT {which}, id, revision, record FROM {tasks} \
         WHERE prefix = $1 AND {which} < $2 AND ({which}, id) > ($3, $4) ORDER BY {which}, id LIMIT {PAGE}"
    );
    let (until, (place, id)) = (millis(now), after);
    let rows = async { backend.database.rows(&sql, &[&backend.prefix, &until, place, id]).await };
    let mut page = Page::default();
    for row in &backend.database.in_time(rows).await? {
        let (place, id) = (column(row, 0)?, column::<String>(row, 1)?);
        page.last = Some((place, id.clone()));
        match TaskRecord::from_json(column(row, 3)?) {
            Ok(record) => page.records.push(Row {
                id,
                revision: column(row, 2)?,
                record,
            }),
            Err(error) => page.unreadable.push((id, error)),
        }
    }
    for (task_id, error) in &page.unreadable {
        warn_unreadable(task_id, "the PostgreSQL table", error);
    }
    Ok(page)
}

/// Removes page by page, so that other writes go in between.
pub(super) async fn sweep(backend: &Backend, now: Timestamp) -> Result<u64, StoreError> {
    let tasks = &backend.database.names.tasks;
    // Rows that somebody else has at the moment are left for the next time: nobody waits for a sweep, nor two sweeps for each
    // other.
    let removal = format!(
        "WITH expired AS ( \
             SELECT task.id FROM {tasks} AS task \
             JOIN unnest($2::text[], $3::bigint[]) AS found (id, revision) USING (id, revision) \
             WHERE task.prefix = $1 FOR UPDATE OF task SKIP LOCKED \
         ) DELETE FROM {tasks} AS task USING expired WHERE task.prefix = $1 AND task.id = expired.id RETURNING 1"
    );
    let (mut removed, mut after) = (0, start());
    loop {
        let page = page(backend, "deadline", now, &after).await?;
        // The column finds a record; what decides is the record.
        let expired = page.records.iter().filter(|row| row.record.is_expired(now));
        let (ids, revisions): (Vec<_>, Vec<_>) = expired.map(|row| (row.id.as_str(), row.revision)).unzip();
        if !ids.is_empty() {
            let rows = async {
                backend
                    .database
                    .rows(&removal, &[&backend.prefix, &ids, &revisions])
                    .await
            };
            removed += backend.database.in_time(rows).await?.len() as u64;
        }
        match page.last {
            Some(last) => after = last,
            None => return Ok(removed),
        }
    }
}

pub(super) async fn expired_leases(
    backend: &Backend,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Arc<TaskRecord>>, StoreError> {
    let (mut found, mut after) = (Vec::new(), start());
    while found.len() < limit {
        let page = page(backend, "lease", now, &after).await?;
        let abandoned = |record: &TaskRecord| record.is_abandoned(now) && !record.is_expired(now);
        let records = page.records.into_iter().map(|row| row.record);
        found.extend(records.filter(abandoned).map(Arc::new));
        match page.last {
            Some(last) => after = last,
            None => break,
        }
    }
    found.truncate(limit);
    Ok(found)
}
