//! A server of this project's, with the tools that the rmcp server has too.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::bail;
use mcp_tasks::__private::Direct;
use mcp_tasks::Config;
use mcp_tasks::prelude::*;
use mcp_tasks::store::{MemoryStore, TaskStore};
use mcp_tasks_core::{TaskRecord, TaskStatus};
use mcp_tasks_tests::rmcp_server::QUESTION;
use serde_json::json;

use crate::options::Preload;
use crate::server::{expiring_id, parked_id};

/// Answers at once and is never a task.
#[mcp_tool]
async fn immediate() -> &'static str {
    "done"
}

/// Takes some steps and says at which it is.
#[mcp_task]
async fn deferred(ctx: ToolContext, steps: Option<u32>) -> &'static str {
    if let Some(steps) = steps {
        let mut progress = ctx.count_to(steps.into());
        for step in 1..=steps {
            progress.advance(1, format!("step {step}"));
        }
    }
    "done"
}

#[derive(Deserialize, JsonSchema, ElicitForm)]
struct Confirm {
    /// Whether to go on
    proceed: bool,
}

/// Asks for a confirmation.
#[mcp_task]
async fn question(ctx: ToolContext) -> Result<&'static str, ToolError> {
    let answer = ctx.elicit::<Confirm>("Go on?").key(QUESTION).await?;
    let proceed = answer.accepted().is_some_and(|confirm| confirm.proceed);
    Ok(if proceed { "done" } else { "left" })
}

/// Goes on until it is cancelled.
#[mcp_task]
async fn slow() -> &'static str {
    std::future::pending().await
}

/// How often the task to be copied is looked at before it is given up.
const LOOKS: u32 = 1_000_000;

/// How long what is stored beforehand lives: longer than any run.
const HOUR: Duration = Duration::from_secs(60 * 60);

/// A task that the engine has run up to its question, to be copied: a million of them take seconds, and each can be
/// answered as any other.
async fn parked(runtime: TaskRuntime) -> anyhow::Result<TaskRecord> {
    let engine = Direct::new(runtime);
    let mut record = engine
        .create("question", &json!({}))
        .await
        .map_err(anyhow::Error::from_boxed)?;
    for _ in 0..LOOKS {
        if record.status == TaskStatus::InputRequired {
            let mut model = TaskRecord::clone(&record);
            model.last_write = None;
            return Ok(model);
        }
        tokio::task::yield_now().await;
        record = engine.get(&record.task_id).await?;
    }
    bail!("a task does not ask its question")
}

async fn fill(store: &MemoryStore, model: &TaskRecord, preload: &Preload) -> anyhow::Result<()> {
    let copy = |id, ttl: Duration| {
        let mut copy = model.clone();
        copy.task_id = id;
        copy.created_at = SystemTime::now().into();
        copy.last_updated_at = copy.created_at;
        copy.ttl_ms = u64::try_from(ttl.as_millis()).ok();
        store.create(copy)
    };
    for number in 0..preload.parked {
        copy(parked_id(number), HOUR).await?;
    }
    // Created last, so that none of them expires before this server takes requests.
    for number in 0..preload.expiring {
        copy(expiring_id(number), preload.expires_in).await?;
    }
    Ok(())
}

pub(super) async fn serve(preload: &Preload, ready: impl FnOnce(&str) + Send + 'static) -> anyhow::Result<()> {
    let store = Arc::new(MemoryStore::new());
    let mut config = Config::builder()
        .without_file()
        .set("mcp.tasks.http.addr", "127.0.0.1:0")
        // Any key does; without one there is a warning.
        .set(
            "mcp.tasks.request-state.keys",
            "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVoxMjM0NTY=",
        );
    if preload.expiring > 0 {
        // What expires shall be swept while a client polls.
        config = config.set("mcp.tasks.sweep-interval", "PT1S");
    }
    let runtime = TaskRuntime::builder()
        .config(config.build()?)
        .without_inventory()
        .register::<immediate>()
        .register::<deferred>()
        .register::<question>()
        .register::<slow>()
        .store(store.clone())
        .build()?;
    if preload.parked + preload.expiring > 0 {
        let model = parked(runtime.clone()).await?;
        fill(&store, &model, preload).await?;
    }
    let server = Server::new(runtime).name("load", "1.0.0").on_ready(ready);
    server.serve().await?;
    Ok(())
}
