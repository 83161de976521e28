//! SQLite, beside rusqlite.

use std::future::ready;
use std::path::Path;
use std::sync::Arc;

use criterion::Criterion;
use mcp_tasks::{Durability, SqliteOptions};
use rusqlite::{Connection, params};
use tokio::runtime::Runtime;

use super::compare::{Driver, Raw, compare};
use super::work::{Bench, must};

struct Rusqlite(Connection);

impl Rusqlite {
    /// A table with the store's columns and indexes, on a connection set up as the store's.
    fn open(path: &Path, durability: Durability) -> Bench<Self> {
        let connection = Connection::open(path)?;
        let synchronous = if durability == Durability::Full {
            "FULL"
        } else {
            "NORMAL"
        };
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        connection.execute_batch(&format!(
            "PRAGMA synchronous = {synchronous};
             CREATE TABLE tasks (id TEXT NOT NULL PRIMARY KEY, version INTEGER NOT NULL, last_write TEXT, deadline INTEGER,
                 lease INTEGER, record TEXT NOT NULL) STRICT;
             CREATE INDEX tasks_deadline ON tasks (deadline) WHERE deadline IS NOT NULL;
             CREATE INDEX tasks_lease ON tasks (lease) WHERE lease IS NOT NULL;"
        ))?;
        Ok(Self(connection))
    }

    fn insert(&self, id: &str, text: &str) -> Bench<()> {
        self.0
            .prepare_cached("INSERT INTO tasks VALUES (?1, 1, ?2, ?3, NULL, ?4) ON CONFLICT (id) DO NOTHING")?
            .execute(params![id, format!("{:032x}", 1), 1_800_003_600_000_i64, text])?;
        Ok(())
    }

    fn select(&self, id: &str) -> Bench<usize> {
        let text: String = self
            .0
            .prepare_cached("SELECT record FROM tasks WHERE id = ?1")?
            .query_row([id], |row| row.get(0))?;
        Ok(text.len())
    }

    fn replace(&self, id: &str, write: &str, text: &str) -> Bench<()> {
        let changed = self
            .0
            .prepare_cached("UPDATE tasks SET version = version + 1, last_write = ?2, record = ?3 WHERE id = ?1")?
            .execute(params![id, write, text])?;
        if changed == 1 {
            Ok(())
        } else {
            Err("it is there".into())
        }
    }
}

impl Driver for Rusqlite {
    fn name(&self) -> &'static str {
        "rusqlite"
    }

    fn create<'a>(&'a mut self, id: &'a str, text: &'a str) -> Raw<'a, ()> {
        Box::pin(ready(self.insert(id, text)))
    }

    fn get<'a>(&'a mut self, id: &'a str) -> Raw<'a, usize> {
        Box::pin(ready(self.select(id)))
    }

    fn update<'a>(&'a mut self, id: &'a str, write: &'a str, text: &'a str) -> Raw<'a, ()> {
        Box::pin(ready(self.replace(id, write, text)))
    }
}

fn sqlite(c: &mut Criterion, name: &str, durability: Durability) {
    let directory = must(tempfile::tempdir().map_err(Into::into));
    let options = SqliteOptions::new(directory.path().join("tasks.db")).durability(durability);
    let store = must(options.open().map_err(Into::into));
    let driver = must(Rusqlite::open(&directory.path().join("raw.db"), durability));
    let runtime = must(Runtime::new().map_err(Into::into));
    compare(c, name, runtime, Arc::new(store), driver);
}

pub(crate) fn full(c: &mut Criterion) {
    sqlite(c, "sqlite, synchronous = FULL", Durability::Full);
}

pub(crate) fn normal(c: &mut Criterion) {
    sqlite(c, "sqlite, synchronous = NORMAL", Durability::Normal);
}
