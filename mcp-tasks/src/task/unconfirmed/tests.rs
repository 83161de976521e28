//! Requests that go away while their write is under way, as when a connection is closed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_tasks_core::store::contract::scripted::ScriptedStore;
use mcp_tasks_core::{ClientCapabilities, Json, MemoryStore, TaskId, TaskRecord, TaskStatus};
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::config::Config;
use crate::run::clock::TokioClock;
use crate::run::origin::RequestOrigin;
use crate::task::{NewTask, TaskEngine};
use crate::{Caller, ElicitForm, State, TaskRuntime, ToolContext, ToolError, mcp_task};

/// How long after a write the store acknowledges it.
const SLOW: Duration = Duration::from_secs(1);

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
    engine: TaskEngine,
    store: Arc<MemoryStore>,
    came_on: Arc<AtomicUsize>,
}

impl Scene {
    fn new() -> Self {
        let store = Arc::new(MemoryStore::new());
        let slow = ScriptedStore::new(store.clone(), |time| Box::pin(sleep(time)))
            .with(|script| (script.create.after, script.update.after) = (SLOW, SLOW));
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
            .store(Arc::new(slow))
            .clock(Arc::new(TokioClock::new()))
            .build()
            .unwrap();
        Self {
            engine: runtime.engine().clone(),
            store,
            came_on,
        }
    }

    fn client() -> RequestOrigin {
        RequestOrigin {
            caller: Caller::anonymous(),
            capabilities: ClientCapabilities::new(Json::of(&json!({"elicitation": {"form": {}}})).unwrap()),
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
