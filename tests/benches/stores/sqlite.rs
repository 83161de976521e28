//! SQLite, beside rusqlite.

use std::future::ready;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use mcp_tasks::store::{Durability, SqliteOptions};
use rusqlite::{Connection, params};
use tokio::task::spawn_blocking;

use super::compare::{self, Driver, Raw, Row};
use super::options::Options;
use super::work::{Bench, DEADLINE};

type Outcome<T> = Result<T, rusqlite::Error>;

/// Two connections to the store's own file, set up as the store's. Each write is a transaction of its own.
struct Rusqlite {
    reading: Mutex<Connection>,
    writing: Arc<Mutex<Connection>>,
}

fn on<T>(connection: &Mutex<Connection>, work: impl FnOnce(&Connection) -> Outcome<T>) -> Outcome<T> {
    work(&connection.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Rusqlite {
    fn open(path: &Path, durability: Durability) -> Bench<Self> {
        let synchronous = if durability == Durability::Full {
            "FULL"
        } else {
            "NORMAL"
        };
        let connect = || {
            let connection = Connection::open(path)?;
            connection.execute_batch(&format!("PRAGMA synchronous = {synchronous}"))?;
            Ok::<_, rusqlite::Error>(Mutex::new(connection))
        };
        Ok(Self {
            reading: connect()?,
            writing: Arc::new(connect()?),
        })
    }

    /// Where it is asked.
    fn read<'a, T: Send + 'a>(&self, work: impl FnOnce(&Connection) -> Outcome<T>) -> Raw<'a, T> {
        let done = on(&self.reading, work);
        Box::pin(ready(done.map_err(Into::into)))
    }

    /// Where it may block.
    fn write<'a, T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Outcome<T> + Send + 'static,
    ) -> Raw<'a, T> {
        let writing = self.writing.clone();
        Box::pin(async move { Ok(spawn_blocking(move || on(&writing, work)).await??) })
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
        let (id, text) = (id.to_owned(), text.to_owned());
        self.write(move |connection| {
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
        self.read(|connection| {
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
        let (id, text) = (id.to_owned(), text.to_owned());
        self.write(move |connection| {
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
