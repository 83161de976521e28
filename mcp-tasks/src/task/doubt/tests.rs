//! Requests that go away while their write is under way, as when a connection is closed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_tasks_core::{
    Json, MemoryStore, Mutation, StoreFuture, TaskId, TaskRecord, TaskStatus, TaskStore, Timestamp, Updated, WriteId,
};
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::config::Config;
use crate::run::clock::Clock;
use crate::task::{Client, Engine, NewTask};
use crate::{Caller, ElicitForm, State, TaskRuntime, ToolContext, ToolError, mcp_task};

/// The time of tokio.
#[derive(Debug)]
struct PausedClock(tokio::time::Instant);

impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_785_196_800_000).saturating_add(self.0.elapsed())
    }
}

/// A store that writes at once and acknowledges a second later.
#[derive(Debug)]
struct Slow(Arc<MemoryStore>);

const SLOW: Duration = Duration::from_secs(1);

impl TaskStore for Slow {
    fn create(&self, record: TaskRecord) -> StoreFuture<'_, Arc<TaskRecord>> {
        let created = self.0.create(record);
        Box::pin(async {
            sleep(SLOW).await;
            created.await
        })
    }

    fn get<'a>(&'a self, id: &'a TaskId, now: Timestamp) -> StoreFuture<'a, Option<Arc<TaskRecord>>> {
        self.0.get(id, now)
    }

    fn update<'a>(
        &'a self,
        id: &'a TaskId,
        now: Timestamp,
        write: WriteId,
        mutation: Mutation,
    ) -> StoreFuture<'a, Option<Updated>> {
        let updated = self.0.update(id, now, write, mutation);
        Box::pin(async {
            sleep(SLOW).await;
            updated.await
        })
    }

    fn delete<'a>(&'a self, id: &'a TaskId) -> StoreFuture<'a, ()> {
        self.0.delete(id)
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema, ElicitForm)]
struct Go {}

/// Asks, and counts how often it came on.
#[mcp_task]
async fn asks(ctx: ToolContext, came_on: State<Arc<AtomicUsize>>) -> Result<(), ToolError> {
    ctx.elicit::<Go>("Go on?").await?;
    came_on.fetch_add(1, Ordering::SeqCst);
    Ok(())
}

struct Scene {
    engine: Engine,
    store: Arc<MemoryStore>,
    came_on: Arc<AtomicUsize>,
}

impl Scene {
    fn new() -> Self {
        let store = Arc::new(MemoryStore::new());
        let came_on = Arc::new(AtomicUsize::new(0));
        let config = Config::builder()
            .without_file()
            .set("mcp.tasks.quota.open-per-principal", "1")
            .set("mcp.tasks.quota.running", "1");
        let runtime = TaskRuntime::builder()
            .without_inventory()
            .config(config.build().unwrap())
            .register::<asks>()
            .state(came_on.clone())
            .store(Arc::new(Slow(store.clone())))
            .clock(Arc::new(PausedClock(tokio::time::Instant::now())))
            .build()
            .unwrap();
        Self {
            engine: runtime.engine,
            store,
            came_on,
        }
    }

    fn client() -> Client {
        Client {
            caller: Caller::anonymous(),
            capabilities: Json::of(&json!({"elicitation": {"form": {}}})).unwrap(),
            trace: None,
        }
    }

    async fn create(&self) -> Result<Arc<TaskRecord>, rmcp::ErrorData> {
        let new = NewTask {
            tool: self.engine.registry().get("asks").unwrap(),
            arguments: Json::of(&json!({})).unwrap(),
            client: Self::client(),
            before: None,
        };
        self.engine.create(new).await
    }

    async fn answer(&self, id: &TaskId) -> Result<(), rmcp::ErrorData> {
        let answer = Json::of(&json!({"action": "accept", "content": {}})).unwrap();
        let answers = BTreeMap::from([("elicit-0".to_owned(), answer)]);
        self.engine.answer(id, &Self::client(), answers).await
    }
}

/// A call whose client goes away while its task is being stored leaves no task, and counts against no quota.
#[tokio::test(start_paused = true)]
async fn a_call_given_up_halfway_leaves_nothing() {
    let scene = Scene::new();
    timeout(SLOW / 2, scene.create()).await.expect_err("given up");
    assert_eq!(scene.store.len(), 1, "it was stored");
    sleep(SLOW).await;
    assert_eq!(scene.store.len(), 0);
    scene.create().await.expect("neither quota is used up");
    sleep(Duration::from_secs(120)).await;
    assert_eq!(scene.store.len(), 1, "what a client was told stays");
}

/// An answer whose client goes away while it is being stored resumes its task all the same.
#[tokio::test(start_paused = true)]
async fn an_answer_given_up_halfway_resumes_its_task() {
    let scene = Scene::new();
    let id = scene.create().await.expect("a task").task_id.clone();
    sleep(2 * SLOW).await;
    timeout(SLOW / 2, scene.answer(&id)).await.expect_err("given up");
    sleep(Duration::from_secs(120)).await;
    let record = scene.engine.get(&id, None).await.expect("it is there");
    assert_eq!((record.status, &record.error), (TaskStatus::Completed, &None));
    assert_eq!(scene.came_on.load(Ordering::SeqCst), 1);
}
