//! SQLite as a store of tasks, beside rusqlite running the same statements by hand.
//!
//! ```text
//! cargo bench -p mcp-tasks-tests --bench stores
//! ```
//!
//! The files lie in `TMPDIR`: what a commit costs is what flushing costs there. A record has five steps in its ledger; the
//! group's name says how long it is as stored.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use mcp_tasks::{Durability, SqliteOptions, SqliteStore};
use mcp_tasks_core::{
    Change, ClientCapabilities, Cursor, Fingerprint, Json, Ledger, Mutation, TaskId, TaskRecord, TaskStore, Timestamp,
    WriteId,
};
use rusqlite::{Connection, params};
use tempfile::TempDir;
use tokio::runtime::Runtime;

type Bench<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn must<T>(outcome: Bench<T>) -> T {
    match outcome {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// How many write at once.
const WRITERS: u32 = 64;

fn json(text: &str) -> Json {
    must(serde_json::from_str(text).map_err(Into::into))
}

/// A task in the middle of its work.
fn record(id: &TaskId) -> TaskRecord {
    let arguments = format!(r#"{{"uri":"file:///videos/{}.mov"}}"#, "a".repeat(200));
    let mut record = TaskRecord::new(
        id.clone(),
        "encode".into(),
        json(&arguments),
        ClientCapabilities::new(json(r#"{"elicitation":{"form":{},"url":{}}}"#)),
        NOW,
        Some(std::time::Duration::from_secs(3_600)),
        std::time::Duration::from_secs(2),
    );
    record.ledger = ledger();
    record.last_write = Some(WriteId::new(1));
    record
}

fn ledger() -> Ledger {
    let mut run = Cursor::new(&Ledger::default());
    for step in 0..5_u32 {
        let ordinal = run.take_ordinal();
        let name = format!("step-{step}");
        let print = Fingerprint::of("step", &name, None);
        let _ = run.begin_step();
        run.finish_step(ordinal, &name, print, json(&format!(r#"{{"minutes":{step}}}"#)));
    }
    run.suspend().ledger
}

fn touch() -> Mutation {
    Arc::new(|record| {
        let mut next = record.clone();
        next.progress = Some(next.progress.unwrap_or_default() + 1.0);
        Change::Write(Box::new(next))
    })
}

struct Setup {
    runtime: Runtime,
    store: Arc<SqliteStore>,
    raw: Connection,
    id: TaskId,
    text: String,
    next: u128,
    _directory: TempDir,
}

/// The statements of the store, on a file of their own, one commit each.
fn raw(path: &Path, durability: Durability) -> Bench<Connection> {
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
    Ok(connection)
}

fn insert(connection: &Connection, id: &str, text: &str) -> Bench<()> {
    connection
        .prepare_cached("INSERT INTO tasks VALUES (?1, 1, ?2, ?3, NULL, ?4) ON CONFLICT (id) DO NOTHING")?
        .execute(params![id, format!("{:032x}", 1), 1_800_003_600_000_i64, text])?;
    Ok(())
}

impl Setup {
    fn new(durability: Durability) -> Bench<Self> {
        let directory = tempfile::tempdir()?;
        let store = SqliteOptions::new(directory.path().join("tasks.db"))
            .durability(durability)
            .open()?;
        let raw = raw(&directory.path().join("raw.db"), durability)?;
        let runtime = Runtime::new()?;
        let id = TaskId::from_entropy([7; 16]);
        let record = runtime.block_on(store.create(record(&id)))?;
        let text = record.to_json()?;
        insert(&raw, id.as_str(), &text)?;
        Ok(Self {
            runtime,
            store: Arc::new(store),
            raw,
            id,
            text,
            next: 1 << 64,
            _directory: directory,
        })
    }

    fn next_id(&mut self) -> TaskId {
        self.next += 1;
        TaskId::from_entropy(self.next.to_be_bytes())
    }

    fn create(&mut self) -> Bench<()> {
        let record = record(&self.next_id());
        self.runtime.block_on(self.store.create(record))?;
        Ok(())
    }

    fn create_raw(&mut self) -> Bench<()> {
        let id = self.next_id();
        insert(&self.raw, id.as_str(), &self.text)
    }

    fn get(&self) -> Bench<()> {
        self.runtime
            .block_on(self.store.get(&self.id, NOW))?
            .ok_or("it is there")?;
        Ok(())
    }

    fn get_raw(&self) -> Bench<usize> {
        let text: String = self
            .raw
            .prepare_cached("SELECT record FROM tasks WHERE id = ?1")?
            .query_row([self.id.as_str()], |row| row.get(0))?;
        Ok(text.len())
    }

    fn update(&mut self) -> Bench<()> {
        self.next += 1;
        let write = WriteId::new(self.next);
        let updated = self
            .runtime
            .block_on(self.store.update(&self.id, NOW, write, touch()))?;
        updated.ok_or("it is there")?;
        Ok(())
    }

    fn update_raw(&mut self) -> Bench<()> {
        self.next += 1;
        let write = format!("{:032x}", self.next);
        let changed = self
            .raw
            .prepare_cached("UPDATE tasks SET version = version + 1, last_write = ?2, record = ?3 WHERE id = ?1")?
            .execute(params![self.id.as_str(), write, self.text])?;
        if changed == 1 {
            Ok(())
        } else {
            Err("it is there".into())
        }
    }

    /// Updates at once, of one task or of one each.
    fn update_at_once(&mut self, ids: &[TaskId]) -> Bench<()> {
        let first = self.next + 1;
        self.next += u128::from(WRITERS);
        let (store, ids) = (self.store.clone(), ids.to_vec());
        self.runtime.block_on(async move {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let (store, id) = (store.clone(), ids[writer as usize % ids.len()].clone());
                    let write = WriteId::new(first + u128::from(writer));
                    tokio::spawn(async move { store.update(&id, NOW, write, touch()).await })
                })
                .collect();
            for writer in writers {
                writer.await??.ok_or("it is there")?;
            }
            Ok(())
        })
    }
}

fn sqlite(c: &mut Criterion, name: &str, durability: Durability) {
    let mut setup = must(Setup::new(durability));
    let mut group = c.benchmark_group(format!("sqlite, {name}, {} bytes", setup.text.len()));
    group.bench_function("get", |b| b.iter(|| must(setup.get())));
    group.bench_function("get, rusqlite", |b| b.iter(|| must(setup.get_raw())));
    group.bench_function("create", |b| b.iter(|| must(setup.create())));
    group.bench_function("create, rusqlite", |b| b.iter(|| must(setup.create_raw())));
    group.bench_function("update", |b| b.iter(|| must(setup.update())));
    group.bench_function("update, rusqlite", |b| b.iter(|| must(setup.update_raw())));
    let one = [setup.id.clone()];
    group.bench_function("64 writers to one task", |b| {
        b.iter(|| must(setup.update_at_once(&one)))
    });
    let many: Vec<_> = (0..WRITERS).map(|_| setup.next_id()).collect();
    for id in &many {
        must(
            setup
                .runtime
                .block_on(setup.store.create(record(id)))
                .map_err(Into::into),
        );
    }
    group.bench_function("64 writers to 64 tasks", |b| {
        b.iter(|| must(setup.update_at_once(&many)))
    });
    group.bench_function("64 updates, one commit each, rusqlite", |b| {
        b.iter(|| (0..WRITERS).for_each(|_| must(setup.update_raw())));
    });
    group.finish();
}

fn full(c: &mut Criterion) {
    sqlite(c, "synchronous = FULL", Durability::Full);
}

fn normal(c: &mut Criterion) {
    sqlite(c, "synchronous = NORMAL", Durability::Normal);
}

criterion_group!(benches, full, normal);
criterion_main!(benches);
