//! The engine and the memory store without a wire: what a task costs before HTTP and JSON-RPC come on top.
//!
//! ```text
//! cargo bench -p mcp-tasks-tests --bench engine
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mcp_tasks::__private::Direct;
use mcp_tasks::prelude::*;
use mcp_tasks::store::{MemoryStore, TaskStore};
use mcp_tasks::{Config, TaskId};
use mcp_tasks_core::{Change, Json, TaskRecord, TaskStatus, Timestamp, WriteId};
use serde_json::json;
use tokio::runtime::Runtime;

/// Returns at once.
#[mcp_task]
async fn nothing() -> String {
    String::new()
}

#[derive(Deserialize, JsonSchema, ElicitForm)]
struct Next {
    /// Whether to go on
    proceed: bool,
}

/// Asks one question after another.
#[mcp_task]
async fn ask(ctx: ToolContext, questions: u32) -> Result<String, ToolError> {
    for n in 0..questions {
        let answer = ctx.elicit::<Next>(format!("Go on after {n}?")).await?;
        if !answer.accepted().is_some_and(|next| next.proceed) {
            break;
        }
    }
    Ok(String::new())
}

type Bench<T> = Result<T, Box<dyn Error + Send + Sync>>;

struct Setup {
    store: Arc<MemoryStore>,
    engine: Direct,
}

fn setup() -> Bench<Setup> {
    let store = Arc::new(MemoryStore::new());
    let runtime = TaskRuntime::builder()
        .config(Config::builder().without_file().build()?)
        .without_inventory()
        .register::<nothing>()
        .register::<ask>()
        .store(store.clone())
        .build()?;
    Ok(Setup {
        store,
        engine: Direct::new(runtime),
    })
}

impl Setup {
    async fn reach(&self, id: &TaskId, status: TaskStatus) -> Bench<Arc<TaskRecord>> {
        loop {
            let record = self.engine.get(id).await?;
            if record.status == status {
                return Ok(record);
            }
            if record.status.is_terminal() {
                return Err(format!("the task ended {}", record.status.as_str()).into());
            }
            tokio::task::yield_now().await;
        }
    }

    async fn complete(&self) -> Bench<()> {
        let record = self.engine.create("nothing", &json!({})).await?;
        self.reach(&record.task_id, TaskStatus::Completed).await?;
        Ok(())
    }

    async fn answer_open(&self, record: &TaskRecord) -> Bench<()> {
        let yes: Json = serde_json::from_str(r#"{"action":"accept","content":{"proceed":true}}"#)?;
        let responses: BTreeMap<String, Json> = record
            .open
            .iter()
            .map(|request| (request.key.to_string(), yes.clone()))
            .collect();
        self.engine.answer(&record.task_id, responses).await
    }

    async fn question_and_answer(&self) -> Bench<()> {
        let record = self.engine.create("ask", &json!({"questions": 1})).await?;
        let parked = self.reach(&record.task_id, TaskStatus::InputRequired).await?;
        self.answer_open(&parked).await?;
        self.reach(&record.task_id, TaskStatus::Completed).await?;
        Ok(())
    }

    /// A task parked at its last question, with `questions` - 1 answers in the ledger.
    async fn parked_after(&self, questions: u32) -> Bench<Arc<TaskRecord>> {
        let record = self.engine.create("ask", &json!({"questions": questions})).await?;
        for _ in 1..questions {
            let parked = self.reach(&record.task_id, TaskStatus::InputRequired).await?;
            self.answer_open(&parked).await?;
        }
        self.reach(&record.task_id, TaskStatus::InputRequired).await
    }

    /// The same parked task again, under another id.
    async fn copy(&self, parked: &TaskRecord, number: u128) -> Bench<Arc<TaskRecord>> {
        let mut copy = parked.clone();
        copy.task_id = TaskId::from_entropy(number.to_be_bytes());
        copy.last_write = None;
        Ok(self.store.create(copy).await?)
    }
}

fn must<T>(outcome: Bench<T>) -> T {
    match outcome {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}

fn lifecycle(c: &mut Criterion) {
    let runtime = must(Runtime::new().map_err(Into::into));
    let setup = must(setup());
    c.bench_function("create to completed", |b| {
        b.iter(|| must(runtime.block_on(setup.complete())));
    });
    c.bench_function("question to answer to completed", |b| {
        b.iter(|| must(runtime.block_on(setup.question_and_answer())));
    });
    let parked = must(runtime.block_on(setup.parked_after(1)));
    c.bench_function("get", |b| {
        b.iter(|| {
            must(
                runtime
                    .block_on(setup.engine.get(black_box(&parked.task_id)))
                    .map_err(Into::into),
            )
        });
    });
}

fn replay(c: &mut Criterion) {
    let runtime = must(Runtime::new().map_err(Into::into));
    let setup = must(setup());
    let mut group = c.benchmark_group("replay of answers");
    let mut number = 0_u128;
    for answers in [1, 10, 100, 1_000] {
        let parked = must(runtime.block_on(setup.parked_after(answers)));
        // What an answer costs is the same however many there are: a replay must not be quadratic.
        group.throughput(Throughput::Elements(u64::from(answers)));
        group.bench_with_input(BenchmarkId::from_parameter(answers), &parked, |b, parked| {
            b.iter_batched(
                || {
                    number += 1;
                    must(runtime.block_on(setup.copy(parked, number)))
                },
                |copy| {
                    must(runtime.block_on(async {
                        setup.answer_open(&copy).await?;
                        setup.reach(&copy.task_id, TaskStatus::Completed).await
                    }))
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

fn memory_store(c: &mut Criterion) {
    let runtime = must(Runtime::new().map_err(Into::into));
    let setup = must(setup());
    let parked = must(runtime.block_on(setup.parked_after(1)));
    let now = parked.created_at;
    let mut group = c.benchmark_group("memory store");
    let mut stored = 1_u128;
    for tasks in [1_000_u128, 1_000_000] {
        while stored < tasks {
            must(runtime.block_on(setup.copy(&parked, stored)));
            stored += 1;
        }
        let id = TaskId::from_entropy((tasks / 2).to_be_bytes());
        group.bench_with_input(BenchmarkId::new("get", tasks), &id, |b, id| {
            b.iter(|| {
                must(
                    runtime
                        .block_on(setup.store.get(black_box(id), now))
                        .map_err(Into::into),
                )
            });
        });
        let mut write = 0;
        group.bench_with_input(BenchmarkId::new("update", tasks), &id, |b, id| {
            b.iter(|| {
                write += 1;
                must(runtime.block_on(touch(&setup.store, id, now, write)))
            });
        });
        let mut number = u128::from(u64::MAX);
        group.bench_function(BenchmarkId::new("create and delete", tasks), |b| {
            b.iter(|| {
                number += 1;
                must(runtime.block_on(async {
                    let record = setup.copy(&parked, number).await?;
                    setup.store.delete(&record.task_id).await.map_err(Into::into)
                }))
            });
        });
    }
    group.finish();
}

async fn touch(store: &MemoryStore, id: &TaskId, now: Timestamp, write: u128) -> Bench<()> {
    let mutation = Arc::new(|record: &TaskRecord| Change::Write(Box::new(record.clone())));
    store
        .update(id, now, WriteId::new(write), mutation)
        .await?
        .ok_or("the task is gone")?;
    Ok(())
}

criterion_group!(benches, lifecycle, replay, memory_store);
criterion_main!(benches);
