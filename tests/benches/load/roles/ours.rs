//! A server of this project's, with the tools that the rmcp server has too.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mcp_tasks::prelude::*;
use mcp_tasks::{Config, MemoryStore, TaskId, TaskStore, Timestamp};
use mcp_tasks_core::{ClientCapabilities, Fingerprint, InputKind, InputRequest, Json, TaskRecord, TaskStatus};
use mcp_tasks_tests::rmcp_server::QUESTION;
use serde_json::json;

use crate::options::Preload;
use crate::request;
use crate::server::{expiring_id, parked_id};

/// Answers at once and is never a task.
#[mcp_tool]
async fn immediate() -> &'static str {
    "done"
}

/// Takes some steps and says at which it is.
#[mcp_task]
async fn deferred(ctx: ToolContext, steps: Option<u32>) -> &'static str {
    let steps = steps.unwrap_or_default();
    let mut progress = ctx.count_to(steps.into());
    for step in 1..=steps {
        progress.advance(1, format!("step {step}"));
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

/// How long what is stored beforehand lives: longer than any run.
const HOUR: Duration = Duration::from_secs(60 * 60);

/// Records as the engine would have written them, but a million in seconds.
struct Model {
    tool: Arc<str>,
    arguments: Json,
    capabilities: ClientCapabilities,
    open: InputRequest,
}

impl Model {
    fn new() -> anyhow::Result<Self> {
        let asked = json!({
            "method": InputKind::Form.method(),
            "params": {"mode": "form", "message": "Go on?", "requestedSchema": {
                "type": "object",
                "properties": {"proceed": {"type": "boolean", "description": "Whether to go on"}},
                "required": ["proceed"],
            }},
        });
        let fingerprint = Fingerprint::of("elicit", QUESTION, Some(&asked));
        let open = InputRequest::new(
            0,
            QUESTION.into(),
            InputKind::Form,
            fingerprint,
            serde_json::from_value(asked)?,
        );
        Ok(Self {
            tool: "question".into(),
            arguments: serde_json::from_str("{}")?,
            capabilities: ClientCapabilities::new(serde_json::from_value(request::declared())?),
            open,
        })
    }

    fn record(&self, id: TaskId, now: Timestamp, ttl: Duration) -> TaskRecord {
        let (arguments, capabilities) = (self.arguments.clone(), self.capabilities.clone());
        let poll = Duration::from_secs(2);
        let mut record = TaskRecord::new(id, self.tool.clone(), arguments, capabilities, now, Some(ttl), poll);
        record.status = TaskStatus::InputRequired;
        record.open.push(self.open.clone());
        record
    }
}

async fn fill(store: &MemoryStore, preload: &Preload) -> anyhow::Result<()> {
    let model = Model::new()?;
    for number in 0..preload.parked {
        let now = SystemTime::now().into();
        store.create(model.record(parked_id(number), now, HOUR)).await?;
    }
    // Created last, so that none of them expires before this server takes requests.
    let now = SystemTime::now().into();
    for number in 0..preload.expiring {
        let record = model.record(expiring_id(number), now, preload.expires_in);
        store.create(record).await?;
    }
    Ok(())
}

pub(super) async fn serve(preload: &Preload, ready: impl FnOnce(&str) + Send + 'static) -> anyhow::Result<()> {
    let store = Arc::new(MemoryStore::new());
    fill(&store, preload).await?;
    let mut config = Config::builder()
        .without_file()
        .set("mcp.tasks.http.addr", "127.0.0.1:0")
        // Any key does; without one there is a warning.
        .set(
            "mcp.tasks.request-state.keys",
            "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVoxMjM0NTY=",
        );
    if preload.expiring > 0 {
        // What expires shall be swept while somebody looks.
        config = config.set("mcp.tasks.sweep-interval", "PT1S");
    }
    let runtime = TaskRuntime::builder()
        .config(config.build()?)
        .without_inventory()
        .register::<immediate>()
        .register::<deferred>()
        .register::<question>()
        .register::<slow>()
        .store(store)
        .build()?;
    let server = Server::new(runtime).name("load", "1.0.0").on_ready(ready);
    server.serve().await?;
    Ok(())
}
