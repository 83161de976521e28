//! The comparison, the same for every store.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::try_join_all;
use mcp_tasks_core::{Mutation, TaskId, TaskRecord, TaskStore, WriteId};
use mcp_tasks_tests::table::{Table, ratio};
use tokio::runtime::{Builder, Runtime};

use super::measure::{Batch, Measured, alternate};
use super::options::Options;
use super::work::{Bench, NOW, complete, record, touch};

/// How many write at once.
const WRITERS: usize = 64;

pub(crate) type Raw<'a, T> = Pin<Box<dyn Future<Output = Bench<T>> + Send + 'a>>;

/// What is under a task's id.
#[derive(Debug)]
pub(crate) struct Row {
    /// The backend's name for this state of it.
    pub(crate) version: u64,
    pub(crate) text: String,
}

/// The driver by hand: the reads and writes that the store makes, as plainly as they can be written.
pub(crate) trait Driver: Send + Sync + 'static {
    /// Writes what is not there; its version.
    fn create<'a>(&'a self, id: &'a str, text: &'a str) -> Raw<'a, u64>;

    /// Reads what is there.
    fn get<'a>(&'a self, id: &'a str) -> Raw<'a, Row>;

    /// Writes if this version is there; the new version.
    fn update<'a>(&'a self, id: &'a str, version: u64, text: &'a str) -> Raw<'a, Option<u64>>;
}

/// What both sides work on.
struct Bed<D> {
    store: Arc<dyn TaskStore>,
    driver: D,
    /// A record, made once: what is measured is how it is kept.
    record: TaskRecord,
    /// The same as stored.
    text: String,
    next: AtomicU64,
    /// What was written by hand, by the version written last.
    versions: Mutex<HashMap<TaskId, u64>>,
}

impl<D: Driver> Bed<D> {
    fn versions(&self) -> MutexGuard<'_, HashMap<TaskId, u64>> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn next_id(&self) -> TaskId {
        TaskId::from_entropy(u128::from(self.next()).to_be_bytes())
    }

    async fn create(&self) -> Bench<TaskId> {
        let mut record = self.record.clone();
        record.task_id = self.next_id();
        let created = self.store.create(record).await?;
        Ok(created.task_id.clone())
    }

    async fn create_by_hand(&self) -> Bench<TaskId> {
        let id = self.next_id();
        let version = self.driver.create(id.as_str(), &self.text).await?;
        self.versions().insert(id.clone(), version);
        Ok(id)
    }

    async fn get(&self, id: &TaskId) -> Bench<()> {
        let found = self.store.get(id, NOW).await?;
        found.map(drop).ok_or_else(|| "the task is gone".into())
    }

    async fn get_by_hand(&self, id: &TaskId) -> Bench<()> {
        let row = self.driver.get(id.as_str()).await?;
        if row.text.is_empty() {
            return Err("the row is empty".into());
        }
        Ok(())
    }

    async fn update(&self, id: &TaskId, mutation: Mutation) -> Bench<()> {
        let write = WriteId::new(u128::from(self.next()));
        let updated = self.store.update(id, NOW, write, mutation).await?;
        updated.map(drop).ok_or_else(|| "the task is gone".into())
    }

    /// From the version that was written last, as the store does it.
    async fn update_by_hand(&self, id: &TaskId) -> Bench<()> {
        let version = self.versions().get(id).copied().unwrap_or_default();
        let updated = self.driver.update(id.as_str(), version, &self.text).await?;
        self.versions()
            .insert(id.clone(), updated.ok_or("somebody else wrote")?);
        Ok(())
    }

    /// What every task goes through at least.
    async fn lifecycle(&self) -> Bench<()> {
        let id = self.create().await?;
        self.update(&id, complete()).await?;
        self.get(&id).await
    }

    async fn lifecycle_by_hand(&self) -> Bench<()> {
        let id = self.create_by_hand().await?;
        self.update_by_hand(&id).await?;
        self.get_by_hand(&id).await
    }

    /// Reads and writes until no other writer was faster.
    async fn contend_by_hand(&self, id: &TaskId) -> Bench<()> {
        loop {
            let row = self.driver.get(id.as_str()).await?;
            let updated = self.driver.update(id.as_str(), row.version, &self.text).await?;
            if updated.is_some() {
                return Ok(());
            }
        }
    }
}

/// Which tasks an operation is done to, in turn.
type Ids = Arc<[TaskId]>;

/// Repeats an operation, or so many of it at once, each in a task of its own.
fn repeat<D: Driver, F>(at_once: usize, bed: &Arc<Bed<D>>, ids: &Ids, operation: fn(Arc<Bed<D>>, TaskId) -> F) -> Batch
where
    F: Future<Output = Bench<()>> + Send + 'static,
{
    let (bed, ids) = (bed.clone(), ids.clone());
    Box::new(move |times| {
        let (bed, ids) = (bed.clone(), ids.clone());
        Box::pin(async move {
            let begin = |n: usize| operation(bed.clone(), ids[n % ids.len()].clone());
            for n in 0..times as usize {
                if at_once == 1 {
                    begin(n).await?;
                    continue;
                }
                let tasks: Vec<_> = (0..at_once).map(|n| tokio::spawn(begin(n))).collect();
                for task in tasks {
                    task.await??;
                }
            }
            Ok(())
        })
    })
}

/// Makes so many tasks, as many at once as there are writers.
fn fill<D: Driver, F>(runtime: &Runtime, bed: &Arc<Bed<D>>, tasks: usize, make: fn(Arc<Bed<D>>) -> F) -> Bench<Ids>
where
    F: Future<Output = Bench<TaskId>> + Send + 'static,
{
    runtime.block_on(async {
        let mut ids = Vec::new();
        while ids.len() < tasks {
            let making = (0..WRITERS.min(tasks - ids.len())).map(|_| make(bed.clone()));
            ids.extend(try_join_all(making).await?);
        }
        Ok(ids.into())
    })
}

/// An operation, as the store does it and by hand.
type Case = (&'static str, Batch, Batch);

fn cases<D: Driver>(runtime: &Runtime, options: &Options, bed: &Arc<Bed<D>>) -> Bench<Vec<Case>> {
    let tasks = |count| fill(runtime, bed, count, |bed| async move { bed.create().await });
    let rows = |count| fill(runtime, bed, count, |bed| async move { bed.create_by_hand().await });
    let (task, row, contended) = (tasks(1)?, rows(1)?, rows(1)?);
    let (others, each, each_by_hand) = (tasks(options.effort.others)?, tasks(WRITERS)?, rows(WRITERS)?);
    Ok(vec![
        (
            "get",
            repeat(1, bed, &task, |bed, id| async move { bed.get(&id).await }),
            repeat(1, bed, &task, |bed, id| async move { bed.get_by_hand(&id).await }),
        ),
        (
            "get, of many tasks in turn",
            repeat(1, bed, &others, |bed, id| async move { bed.get(&id).await }),
            repeat(1, bed, &others, |bed, id| async move { bed.get_by_hand(&id).await }),
        ),
        (
            "create",
            repeat(1, bed, &task, |bed, _| async move { bed.create().await.map(drop) }),
            repeat(
                1,
                bed,
                &row,
                |bed, _| async move { bed.create_by_hand().await.map(drop) },
            ),
        ),
        (
            "update",
            repeat(1, bed, &task, |bed, id| async move { bed.update(&id, touch()).await }),
            repeat(1, bed, &row, |bed, id| async move { bed.update_by_hand(&id).await }),
        ),
        (
            "create, complete, get",
            repeat(1, bed, &task, |bed, _| async move { bed.lifecycle().await }),
            repeat(1, bed, &row, |bed, _| async move { bed.lifecycle_by_hand().await }),
        ),
        (
            "64 updates at once, of one task",
            repeat(
                WRITERS,
                bed,
                &task,
                |bed, id| async move { bed.update(&id, touch()).await },
            ),
            repeat(WRITERS, bed, &contended, |bed, id| async move {
                bed.contend_by_hand(&id).await
            }),
        ),
        (
            "64 updates at once, of 64 tasks",
            repeat(
                WRITERS,
                bed,
                &each,
                |bed, id| async move { bed.update(&id, touch()).await },
            ),
            repeat(WRITERS, bed, &each_by_hand, |bed, id| async move {
                bed.update_by_hand(&id).await
            }),
        ),
    ])
}

/// What both sides run on. One thread: with several it is chance whether a driver's task lies on the one that asks, which makes
/// more of a difference than anything that is compared here.
pub(crate) fn runtime() -> Bench<Runtime> {
    Ok(Builder::new_multi_thread().worker_threads(1).enable_all().build()?)
}

/// Has the store connect, and make what it needs.
pub(crate) async fn first(store: &dyn TaskStore) -> Bench<()> {
    store.get(&TaskId::new("none"), NOW).await?;
    Ok(())
}

/// Runs the comparison and prints its table. `runtime` is the one on which the store and the driver were opened.
pub(crate) fn compare(
    options: &Options,
    name: &str,
    runtime: &Runtime,
    store: Arc<dyn TaskStore>,
    driver: impl Driver,
) -> Bench<()> {
    let record = record(&TaskId::from_entropy([7; 16]));
    let text = record.to_json()?;
    let name = format!("{name}, {} bytes", text.len());
    let bed = Arc::new(Bed {
        store,
        driver,
        record,
        text,
        next: AtomicU64::new(1 << 32),
        versions: Mutex::default(),
    });
    let mut table = Table::new([
        &name,
        "store, µs",
        "by hand, µs",
        "ratio",
        "CPU, µs",
        "CPU by hand, µs",
        "ratio of CPU",
    ]);
    for (what, ours, by_hand) in cases(runtime, options, &bed)? {
        if what.starts_with(&options.only) {
            eprintln!("  {what}");
            add(&mut table, what, &alternate(runtime, options.effort, &ours, &by_hand)?);
        }
    }
    table.print();
    Ok(())
}

fn add(table: &mut Table, what: &str, measured: &Measured) {
    let micros = |seconds: f64| format!("{:.1}", seconds * 1e6);
    let ([store, by_hand, slower], [cpu, cpu_by_hand, more]) = (measured.times(), measured.cpu());
    table.row([
        what.to_owned(),
        micros(store),
        micros(by_hand),
        ratio(slower),
        micros(cpu),
        micros(cpu_by_hand),
        ratio(more),
    ]);
}
