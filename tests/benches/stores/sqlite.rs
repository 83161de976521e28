//! SQLite, beside rusqlite.

use std::future::ready;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use mcp_tasks::{Durability, SqliteOptions};
use rusqlite::{Connection, params};

use super::compare::{self, Driver, Raw, Row};
use super::options::Options;
use super::work::{Bench, DEADLINE};

/// A connection to the store's own file, set up as the store's. Each write is a transaction of its own.
struct Rusqlite(Mutex<Connection>);

impl Rusqlite {
    fn open(path: &Path, durability: Durability) -> Bench<Self> {
        let connection = Connection::open(path)?;
        let synchronous = if durability == Durability::Full {
            "FULL"
        } else {
            "NORMAL"
        };
        connection.execute_batch(&format!("PRAGMA synchronous = {synchronous}"))?;
        Ok(Self(Mutex::new(connection)))
    }

    fn on_connection<'a, T: Send + 'a>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
    ) -> Raw<'a, T> {
        let done = work(&self.0.lock().unwrap_or_else(PoisonError::into_inner));
        Box::pin(ready(done.map_err(Into::into)))
    }
}

/// The store has the id of the last write in a column of its own; here it is the version once more.
fn last_write(version: u64) -> String {
    format!("{version:032x}")
}

fn number(version: u64) -> i64 {
    version.cast_signed()
}

impl Driver for Rusqlite {
    fn create<'a>(&'a self, id: &'a str, text: &'a str) -> Raw<'a, u64> {
        self.on_connection(|connection| {
            connection
                .prepare_cached(
                    "INSERT INTO tasks (id, version, last_write, deadline, lease, record) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
                     ON CONFLICT (id) DO NOTHING",
                )?
                .execute(params![id, 1, last_write(1), DEADLINE, None::<i64>, text])?;
            Ok(1)
        })
    }

    fn get<'a>(&'a self, id: &'a str) -> Raw<'a, Row> {
        self.on_connection(|connection| {
            connection
                .prepare_cached("SELECT record, version FROM tasks WHERE id = ?1")?
                .query_row([id], |row| {
                    Ok(Row {
                        text: row.get(0)?,
                        version: row.get::<_, i64>(1)?.cast_unsigned(),
                    })
                })
        })
    }

    fn update<'a>(&'a self, id: &'a str, version: u64, text: &'a str) -> Raw<'a, Option<u64>> {
        self.on_connection(|connection| {
            let next = version + 1;
            let changed = connection
                .prepare_cached(
                    "UPDATE tasks SET version = ?2, last_write = ?3, record = ?4 \
                     WHERE id = ?1 AND version = ?5 AND last_write IS ?6",
                )?
                .execute(params![
                    id,
                    number(next),
                    last_write(next),
                    text,
                    number(version),
                    last_write(version)
                ])?;
            Ok((changed == 1).then_some(next))
        })
    }
}

fn sqlite(options: &Options, name: &str, durability: Durability) -> Bench<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("tasks.db");
    let store = SqliteOptions::new(&path).durability(durability).open()?;
    let driver = Rusqlite::open(&path, durability)?;
    compare::compare(options, name, &compare::runtime()?, Arc::new(store), driver)
}

pub(crate) fn full(options: &Options) -> Bench<()> {
    sqlite(options, "SQLite, synchronous = FULL", Durability::Full)
}

pub(crate) fn normal(options: &Options) -> Bench<()> {
    sqlite(options, "SQLite, synchronous = NORMAL", Durability::Normal)
}
