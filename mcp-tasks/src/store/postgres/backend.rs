//! Rows, compared and set by one statement each.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use mcp_tasks_core::store::{CasEntry, CasOutcome, CasVersion, CasWrite, Expect, RecordMarks};
use mcp_tasks_core::{CasBackend, StoreError, StoreFuture, Timestamp};
use tokio_postgres::Row;

use super::database::{Database, Parameters};
use super::feed;
use crate::store::version;

/// The rows of one prefix.
#[derive(Debug)]
pub(super) struct Backend {
    pub(super) database: Arc<Database>,
    pub(super) prefix: String,
    statements: Statements,
}

#[derive(Debug)]
struct Statements {
    read: String,
    insert: String,
    update: String,
    remove: String,
}

impl Backend {
    pub(super) fn new(database: Arc<Database>, prefix: &str) -> Self {
        let (tasks, feed) = (&database.names.tasks, &database.names.feed);
        // Within the write, so that what is told of and what is stored are one. Only for somebody who listens, because of
        // transactions that notify PostgreSQL commits one after another.
        let telling = |channel: u8, payload: u8| {
            format!(
                "RETURNING (SELECT pg_notify(${channel}, ${payload}) FROM {feed} \
                 WHERE prefix = $1 AND wanted_until > now())"
            )
        };
        let statements = Statements {
            read: format!("SELECT record, revision FROM {tasks} WHERE prefix = $1 AND id = $2"),
            insert: format!(
                "INSERT INTO {tasks} (prefix, id, revision, deadline, lease, record) VALUES ($1, $2, $3, $4, $5, $6) \
                 ON CONFLICT (prefix, id) DO NOTHING {}",
                telling(7, 8)
            ),
            update: format!(
                "UPDATE {tasks} SET revision = $3, deadline = $4, lease = $5, record = $6 \
                 WHERE prefix = $1 AND id = $2 AND revision = $9 {}",
                telling(7, 8)
            ),
            remove: format!(
                "DELETE FROM {tasks} WHERE prefix = $1 AND id = $2 AND ($3::bigint IS NULL OR revision = $3) {}",
                telling(4, 5)
            ),
        };
        Self {
            database,
            prefix: storable(prefix).into_owned(),
            statements,
        }
    }

    async fn read(&self, key: &str) -> Result<Option<CasEntry>, StoreError> {
        let rows = self
            .database
            .rows(&self.statements.read, &[&self.prefix, &storable(key)])
            .await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let (record, revision) = (column::<&str>(row, 0)?, column::<i64>(row, 1)?);
        Ok(Some(CasEntry::new(
            record.as_bytes().to_vec(),
            CasVersion::new(revision.cast_unsigned()),
        )))
    }

    async fn write(&self, key: &str, expect: Expect, write: CasWrite<'_>) -> Result<CasOutcome, StoreError> {
        let record = std::str::from_utf8(write.value).map_err(|error| StoreError::Refused {
            reason: "the record is no text".to_owned(),
            source: Some(Box::new(error)),
        })?;
        let RecordMarks { deadline, lease, .. } = write.marks;
        let (deadline, lease) = (deadline.map(millis), lease.map(millis));
        let version = version::random()?;
        let revision = version.get().cast_signed();
        let (id, channel) = (storable(key), feed::channel(&self.prefix));
        let payload = feed::payload(&id, Some(write.marks));
        let common: [&(dyn tokio_postgres::types::ToSql + Sync); 8] = [
            &self.prefix,
            &id,
            &revision,
            &deadline,
            &lease,
            &record,
            &channel,
            &payload,
        ];
        let rows = match expect {
            Expect::Absent => self.database.rows(&self.statements.insert, &common).await?,
            Expect::Version(expected) => {
                let expected = expected.get().cast_signed();
                let [a, b, c, d, e, f, g, h] = common;
                let parameters: Parameters<'_> = &[a, b, c, d, e, f, g, h, &expected];
                self.database.rows(&self.statements.update, parameters).await?
            }
        };
        Ok(if rows.is_empty() {
            CasOutcome::Conflict
        } else {
            CasOutcome::Applied(version)
        })
    }

    async fn delete(&self, key: &str, version: Option<CasVersion>) -> Result<bool, StoreError> {
        let expected = version.map(|version| version.get().cast_signed());
        let (id, channel) = (storable(key), feed::channel(&self.prefix));
        let payload = feed::payload(&id, None);
        let parameters: Parameters<'_> = &[&self.prefix, &id, &expected, &channel, &payload];
        let rows = self.database.rows(&self.statements.remove, parameters).await?;
        Ok(!rows.is_empty())
    }
}

impl CasBackend for Backend {
    fn get<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<CasEntry>> {
        Box::pin(self.read(key))
    }

    fn compare_and_set<'a>(&'a self, key: &'a str, expect: Expect, write: CasWrite<'a>) -> StoreFuture<'a, CasOutcome> {
        Box::pin(self.write(key, expect, write))
    }

    fn remove<'a>(&'a self, key: &'a str, version: Option<CasVersion>) -> StoreFuture<'a, bool> {
        Box::pin(self.delete(key, version))
    }

    fn pause(&self, duration: Duration) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            tokio::time::sleep(duration).await;
            Ok(())
        })
    }
}

/// A column, or the word that it is of another type.
pub(super) fn column<'a, T: tokio_postgres::types::FromSql<'a>>(row: &'a Row, index: usize) -> Result<T, StoreError> {
    row.try_get(index).map_err(|error| StoreError::Refused {
        reason: "the PostgreSQL tables are not laid out as expected".to_owned(),
        source: Some(Box::new(error)),
    })
}

/// The text as PostgreSQL takes it, which has no NUL. Different texts stay different.
pub(super) fn storable(text: &str) -> Cow<'_, str> {
    if text.contains(['\0', '\\']) {
        Cow::Owned(text.replace('\\', "\\\\").replace('\0', "\\0"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The text that [`storable`] was given.
pub(super) fn original(stored: &str) -> String {
    let mut text = String::with_capacity(stored.len());
    let mut letters = stored.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => text.push(if letters.next() == Some('0') { '\0' } else { '\\' }),
            other => text.push(other),
        }
    }
    text
}

pub(super) fn millis(time: Timestamp) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_postgres_cannot_hold_is_written_otherwise_and_read_back() {
        for text in ["", "plain", "a\0b", "\\0", "\\", "\\\\0\0\\", "é\0é"] {
            let stored = storable(text);
            assert!(!stored.contains('\0'));
            assert_eq!(original(&stored), text);
        }
        assert_ne!(storable("\0"), storable("\\0"));
    }
}
