//! The comparison, the same for every store.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use criterion::Criterion;
use mcp_tasks_core::{TaskId, TaskStore, WriteId};
use tokio::runtime::Runtime;

use super::work::{Bench, NOW, complete, must, record, touch};

/// How many write at once.
const WRITERS: u32 = 64;

pub(crate) type Raw<'a, T> = Pin<Box<dyn Future<Output = Bench<T>> + 'a>>;

/// The driver by hand: the reads and writes that the store makes, as plainly as whoever knows the driver writes them, on one
/// connection, in the same durability. A write has to fail if the row is not as expected.
pub(crate) trait Driver {
    /// What the driver is called.
    fn name(&self) -> &'static str;

    /// Writes a row that is not there.
    fn create<'a>(&'a mut self, id: &'a str, text: &'a str) -> Raw<'a, ()>;

    /// Reads a row; its length.
    fn get<'a>(&'a mut self, id: &'a str) -> Raw<'a, usize>;

    /// Writes a row that is there, if it has the version that was written last.
    fn update<'a>(&'a mut self, id: &'a str, write: &'a str, text: &'a str) -> Raw<'a, ()>;
}

/// A store, its driver, and the tasks so far.
struct Pair<D> {
    runtime: Runtime,
    store: Arc<dyn TaskStore>,
    driver: D,
    id: TaskId,
    text: String,
    next: u128,
}

impl<D: Driver> Pair<D> {
    fn next_id(&mut self) -> TaskId {
        self.next += 1;
        TaskId::from_entropy(self.next.to_be_bytes())
    }

    fn next_write(&mut self) -> u128 {
        self.next += 1;
        self.next
    }

    fn create(&mut self) -> Bench<TaskId> {
        let id = self.next_id();
        self.runtime.block_on(self.store.create(record(&id)))?;
        Ok(id)
    }

    fn create_by_hand(&mut self) -> Bench<()> {
        let id = self.next_id();
        self.runtime.block_on(self.driver.create(id.as_str(), &self.text))
    }

    fn get(&self) -> Bench<()> {
        let found = self.runtime.block_on(self.store.get(&self.id, NOW))?;
        found.map(drop).ok_or_else(|| "it is there".into())
    }

    fn get_by_hand(&mut self) -> Bench<usize> {
        self.runtime.block_on(self.driver.get(self.id.as_str()))
    }

    fn update(&mut self) -> Bench<()> {
        let write = WriteId::new(self.next_write());
        let updated = self
            .runtime
            .block_on(self.store.update(&self.id, NOW, write, touch()))?;
        updated.map(drop).ok_or_else(|| "it is there".into())
    }

    fn update_by_hand(&mut self) -> Bench<()> {
        let write = format!("{:032x}", self.next_write());
        self.runtime
            .block_on(self.driver.update(self.id.as_str(), &write, &self.text))
    }

    /// What every task goes through at least.
    fn lifecycle(&mut self) -> Bench<()> {
        let id = self.create()?;
        let write = WriteId::new(self.next_write());
        self.runtime.block_on(async {
            self.store.update(&id, NOW, write, complete()).await?;
            self.store.get(&id, NOW).await?;
            Ok(())
        })
    }

    fn lifecycle_by_hand(&mut self) -> Bench<()> {
        let (id, write) = (self.next_id(), format!("{:032x}", self.next_write()));
        let (driver, text) = (&mut self.driver, &self.text);
        self.runtime.block_on(async {
            driver.create(id.as_str(), text).await?;
            driver.update(id.as_str(), &write, text).await?;
            driver.get(id.as_str()).await?;
            Ok(())
        })
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

/// Runs the comparison. `runtime` is the one on which the store and the driver were opened.
pub(crate) fn compare(c: &mut Criterion, name: &str, runtime: Runtime, store: Arc<dyn TaskStore>, driver: impl Driver) {
    let id = TaskId::from_entropy([7; 16]);
    let mut pair = Pair {
        runtime,
        store,
        driver,
        id,
        text: String::new(),
        next: 1 << 64,
    };
    let created = pair.runtime.block_on(pair.store.create(record(&pair.id)));
    pair.text = must(created.map_err(Into::into).and_then(|record| Ok(record.to_json()?)));
    must(pair.runtime.block_on(pair.driver.create(pair.id.as_str(), &pair.text)));

    let by_hand = |what: &str, pair: &Pair<_>| format!("{what}, {} by hand", Driver::name(&pair.driver));
    let mut group = c.benchmark_group(format!("{name}, {} bytes", pair.text.len()));
    group.bench_function("get", |b| b.iter(|| must(pair.get())));
    group.bench_function(by_hand("get", &pair), |b| b.iter(|| must(pair.get_by_hand())));
    group.bench_function("create", |b| b.iter(|| must(pair.create())));
    group.bench_function(by_hand("create", &pair), |b| b.iter(|| must(pair.create_by_hand())));
    group.bench_function("update", |b| b.iter(|| must(pair.update())));
    group.bench_function(by_hand("update", &pair), |b| b.iter(|| must(pair.update_by_hand())));
    group.bench_function("create, complete, get", |b| b.iter(|| must(pair.lifecycle())));
    group.bench_function(by_hand("create, complete, get", &pair), |b| {
        b.iter(|| must(pair.lifecycle_by_hand()));
    });
    let one = [pair.id.clone()];
    group.bench_function("64 writers to one task", |b| b.iter(|| must(pair.update_at_once(&one))));
    let many: Vec<_> = (0..WRITERS).map(|_| must(pair.create())).collect();
    group.bench_function("64 writers to 64 tasks", |b| {
        b.iter(|| must(pair.update_at_once(&many)))
    });
    group.bench_function(by_hand("64 updates one after the other", &pair), |b| {
        b.iter(|| (0..WRITERS).for_each(|_| must(pair.update_by_hand())));
    });
    group.finish();
}
