//! Rows and the statements on them. Each write is one conditional statement.

use std::sync::Arc;

use mcp_tasks_core::store::RecordMarks;
use mcp_tasks_core::{Change, Mutation, StoreError, TaskId, TaskRecord, Timestamp, Updated, WriteId};
use quick_cache::Weighter;
use quick_cache::unsync::Cache;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, OptionalExtension, Row, params};

use super::parsed::Parsed;
use crate::store::failure::refused;

/// How much of what was last written is kept, in bytes of records as stored: a few thousand ordinary records, which is
/// more than a node runs at a time, and nothing that an operator would look for.
const REMEMBERED: u64 = 8 << 20;

/// Roughly how many records that is; they are a KiB or two.
const RECORDS: usize = 8_192;

/// What an operation makes of the rows: an outcome, good or bad, that is answered once it is committed; or a failure of
/// SQLite, which undoes the transaction.
type Outcome<T> = Result<Result<T, StoreError>, Error>;

/// The column `record`, of whatever type it is.
pub(super) fn text<'row>(row: &'row Row<'_>, column: usize) -> Result<&'row [u8], Error> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
        // No record, which decoding will say.
        _ => &[],
    })
}

/// The record of a task, parsed anew only if its row has another text than when it was last read.
pub(super) fn record(connection: &Connection, id: &TaskId, parsed: &Parsed) -> Outcome<Option<Arc<TaskRecord>>> {
    with_row(connection, id, |text| {
        if let Some(known) = parsed.get(id, text) {
            return Ok(known);
        }
        let record = decode(id, text)?;
        parsed.keep(&record, text);
        Ok(record)
    })
}

/// Reads the record in the row of a task.
fn read(connection: &Connection, id: &TaskId) -> Outcome<Option<Arc<TaskRecord>>> {
    with_row(connection, id, |text| decode(id, text))
}

/// Looks at the text in the row of a task where it lies.
fn with_row<T>(
    connection: &Connection,
    id: &TaskId,
    look: impl FnOnce(&[u8]) -> Result<T, StoreError>,
) -> Outcome<Option<T>> {
    let mut statement = connection.prepare_cached("SELECT record FROM tasks WHERE id = ?1")?;
    let found = statement.query_row([id.as_str()], |row| Ok(look(text(row, 0)?)));
    Ok(found.optional()?.transpose())
}

fn decode(id: &TaskId, text: &[u8]) -> Result<Arc<TaskRecord>, StoreError> {
    TaskRecord::from_slice(text)
        .map(Arc::new)
        .map_err(|source| StoreError::Unreadable { id: id.clone(), source })
}

/// The rows inside a transaction that nobody else writes during.
pub(super) struct Rows<'a> {
    pub(super) connection: &'a Connection,
    pub(super) seen: &'a mut Seen,
}

/// `?` on an outcome within.
macro_rules! good {
    ($outcome:expr) => {
        match $outcome {
            Ok(value) => value,
            Err(error) => return Ok(Err(error)),
        }
    };
}

impl Rows<'_> {
    fn present(&self, id: &TaskId) -> Outcome<Option<Arc<TaskRecord>>> {
        read(self.connection, id)
    }

    /// Writes `next` if `present` is there.
    fn replace(&mut self, present: &TaskRecord, next: &Arc<TaskRecord>) -> Outcome<bool> {
        let text = good!(encode(next));
        let last_write = next.last_write.map(|write| write.to_string());
        let expected = present.last_write.map(|write| write.to_string());
        let (id, version, expected_version) = (next.task_id.as_str(), number(next.version), number(present.version));
        // Most writes leave deadline and lease alone, and then the indexes are left alone too.
        let [deadline, lease] = indexed(next);
        let changed = if [deadline, lease] == indexed(present) {
            self.connection
                .prepare_cached(
                    "UPDATE tasks SET version = ?2, last_write = ?3, record = ?4 \
                     WHERE id = ?1 AND version = ?5 AND last_write IS ?6",
                )?
                .execute(params![id, version, last_write, text, expected_version, expected])?
        } else {
            self.connection
                .prepare_cached(
                    "UPDATE tasks SET version = ?2, last_write = ?3, record = ?4, deadline = ?7, lease = ?8 \
                     WHERE id = ?1 AND version = ?5 AND last_write IS ?6",
                )?
                .execute(params![
                    id,
                    version,
                    last_write,
                    text,
                    expected_version,
                    expected,
                    deadline,
                    lease
                ])?
        };
        if changed == 1 {
            self.seen.remember(next, text.len());
        }
        Ok(Ok(changed == 1))
    }

    pub(super) fn create(&mut self, record: &Arc<TaskRecord>) -> Outcome<Arc<TaskRecord>> {
        let id = &record.task_id;
        let text = good!(encode(record));
        let last_write = record.last_write.map(|write| write.to_string());
        let [deadline, lease] = indexed(record);
        let created = self
            .connection
            .prepare_cached(
                "INSERT INTO tasks (id, version, last_write, deadline, lease, record) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
                 ON CONFLICT (id) DO NOTHING",
            )?
            .execute(params![
                id.as_str(),
                number(record.version),
                last_write,
                deadline,
                lease,
                text
            ])?;
        if created == 1 {
            self.seen.remember(record, text.len());
            return Ok(Ok(record.clone()));
        }
        let Some(present) = good!(self.present(id)?) else {
            // Nobody else writes meanwhile.
            return Err(Error::StatementChangedRows(0));
        };
        if present.is_expired(record.created_at) {
            return Ok(match good!(self.replace(&present, record)?) {
                true => Ok(record.clone()),
                false => Err(not_itself(id)),
            });
        }
        Ok(
            if record.last_write.is_some() && present.last_write == record.last_write {
                Ok(present)
            } else {
                Err(StoreError::AlreadyExists { id: id.clone() })
            },
        )
    }

    pub(super) fn update(
        &mut self,
        id: &TaskId,
        now: Timestamp,
        write: WriteId,
        mutation: &Mutation,
    ) -> Outcome<Option<Updated>> {
        // From what was last written here: one statement, if no other process wrote since. That a record is expired, has
        // this write or is to be kept is only said of what was read.
        if let Some(seen) = self.seen.get(id)
            && !seen.is_expired(now)
            && seen.last_write != Some(write)
            && let Change::Write(next) = mutation(&seen)
        {
            let next = stamped(*next, &seen, write);
            if good!(self.replace(&seen, &next)?) {
                return Ok(Ok(Some(Updated::new(next, true))));
            }
        }
        let present = good!(self.present(id)?);
        let Some(present) = present.filter(|record| !record.is_expired(now)) else {
            return Ok(Ok(None));
        };
        if present.last_write == Some(write) {
            return Ok(Ok(Some(Updated::new(present, true))));
        }
        let Change::Write(next) = mutation(&present) else {
            return Ok(Ok(Some(Updated::new(present, false))));
        };
        let next = stamped(*next, &present, write);
        Ok(match good!(self.replace(&present, &next)?) {
            true => Ok(Some(Updated::new(next, true))),
            false => Err(not_itself(id)),
        })
    }

    pub(super) fn delete(&mut self, id: &TaskId) -> Outcome<()> {
        self.seen.forget(id);
        self.connection
            .prepare_cached("DELETE FROM tasks WHERE id = ?1")?
            .execute([id.as_str()])?;
        Ok(Ok(()))
    }

    /// Removes the records, those that are still as they are here, and returns how many.
    pub(super) fn remove(&mut self, records: &[TaskRecord]) -> Outcome<u64> {
        let mut statement = self
            .connection
            .prepare_cached("DELETE FROM tasks WHERE id = ?1 AND version = ?2 AND last_write IS ?3")?;
        let mut removed = 0;
        for record in records {
            self.seen.forget(&record.task_id);
            let last_write = record.last_write.map(|write| write.to_string());
            removed += statement.execute(params![record.task_id.as_str(), number(record.version), last_write])?;
        }
        Ok(Ok(removed as u64))
    }
}

fn stamped(mut next: TaskRecord, present: &TaskRecord, write: WriteId) -> Arc<TaskRecord> {
    next.task_id = present.task_id.clone();
    next.version = present.version.saturating_add(1);
    next.last_write = Some(write);
    Arc::new(next)
}

fn encode(record: &TaskRecord) -> Result<String, StoreError> {
    record.to_json().map_err(|error| StoreError::Refused {
        reason: "the record has no JSON form".to_owned(),
        source: Some(Box::new(error)),
    })
}

/// A row whose columns are not those of its record, which no release writes.
fn not_itself(id: &TaskId) -> StoreError {
    refused(format!(
        "the row of task {id} contradicts the record in it; it was left alone"
    ))
}

/// SQLite's integers have a sign. Versions count writes and do not come near.
fn number(version: u64) -> i64 {
    i64::try_from(version).unwrap_or(i64::MAX)
}

pub(super) fn millis(time: Timestamp) -> i64 {
    number(time.as_millis())
}

/// Deadline and lease, as they stand in columns.
fn indexed(record: &TaskRecord) -> [Option<i64>; 2] {
    let RecordMarks { deadline, lease, .. } = RecordMarks::of(record);
    [deadline, lease].map(|time| time.map(millis))
}

/// Records as this process last wrote them, those that may be written again.
pub(super) struct Seen(Cache<TaskId, (Arc<TaskRecord>, usize), Bytes>);

#[derive(Clone)]
struct Bytes;

impl Weighter<TaskId, (Arc<TaskRecord>, usize)> for Bytes {
    fn weight(&self, _: &TaskId, (_, size): &(Arc<TaskRecord>, usize)) -> u64 {
        *size as u64
    }
}

impl Default for Seen {
    fn default() -> Self {
        Self(Cache::with_weighter(RECORDS, REMEMBERED, Bytes))
    }
}

impl Seen {
    fn get(&self, id: &TaskId) -> Option<Arc<TaskRecord>> {
        self.0.get(id).map(|(record, _)| record.clone())
    }

    /// Keeps a record that may be written again. Without the id of its write it could not be told from another.
    fn remember(&mut self, record: &Arc<TaskRecord>, size: usize) {
        if record.status.is_terminal() || record.last_write.is_none() {
            self.forget(&record.task_id);
        } else {
            self.0.insert(record.task_id.clone(), (record.clone(), size));
        }
    }

    fn forget(&mut self, id: &TaskId) {
        self.0.remove(id);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
