//! A server on rmcp's own [`TaskManager`], as a good user of it would write one: what our client is tried on, and what the
//! load benchmark compares with.
//!
//! It answers JSON, sets `TCP_NODELAY`, and dispatches by hand, which is the cheapest way rmcp offers. What `TaskManager`
//! has no means for, this server does not do:
//!
//! * A question outside of a task. A future cannot be parked between two requests, so a tool that asks would have to be
//!   written a second time, as rounds of a call. `question` refuses a client that does not declare the extension.
//! * A check of answers against the form they were asked with, or a second question after one that does not fit.
//! * Progress other than a status message.
//! * `taskIds` in `subscriptions/listen`: rmcp's filter does not have the member.
//! * A store: tasks live in one map of this process, as futures, under one lock, and every operation looks at every task
//!   for expired ones.

use std::io;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use axum::serve::ListenerExt;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ClientCapabilities, ContentBlock,
    CreateTaskResult, ErrorData, GetTaskParams, GetTaskResult, InputRequest, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::task_manager::{TaskContext, TaskExit, TaskFuture, TaskManager, TaskOptions};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Our default, so that tasks of both servers live equally long.
const TTL: Duration = Duration::from_secs(60 * 60);

/// How often clients should look: short, as tests wait for it.
const POLL_INTERVAL_MS: u64 = 50;

/// The key of the one question.
pub const QUESTION: &str = "confirm";

/// rmcp's handler. Clones share the tasks.
#[derive(Clone, Default)]
pub struct RmcpServer {
    tasks: TaskManager,
}

impl std::fmt::Debug for RmcpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RmcpServer").finish_non_exhaustive()
    }
}

/// The arguments of `deferred`.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct Steps {
    /// How many steps the work has.
    steps: u32,
    /// How long each takes, in milliseconds.
    step_ms: u64,
}

/// A tool, with its arguments.
#[derive(Debug, Clone, Copy)]
enum Work {
    Immediate,
    Deferred(Steps),
    Question,
    Slow,
    ToolError,
    Failure,
}

/// Name, description and input schema of every tool.
static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    let none = object(json!({"type": "object", "properties": {}}));
    let steps = object(json!({"type": "object", "properties": {
        "steps": {"type": "integer", "minimum": 0},
        "step_ms": {"type": "integer", "minimum": 0},
    }}));
    [
        ("immediate", "Answers at once and is never a task", &none),
        ("deferred", "Takes some steps and says at which it is", &steps),
        ("question", "Asks for a confirmation", &none),
        ("slow", "Goes on until it is cancelled", &none),
        ("tool_error", "Ends with a tool error", &none),
        ("failure", "Ends with a JSON-RPC error", &none),
    ]
    .map(|(name, description, schema)| Tool::new(name, description, schema.clone()))
    .into()
});

/// The question as it goes out; made once.
static REQUEST: LazyLock<Option<InputRequest>> = LazyLock::new(|| {
    serde_json::from_value(json!({
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": "Go on?",
            "requestedSchema": {
                "type": "object",
                "properties": {"proceed": {"type": "boolean", "description": "Whether to go on"}},
                "required": ["proceed"],
            },
        },
    }))
    .ok()
});

fn object(value: Value) -> Arc<JsonObject> {
    Arc::new(match value {
        Value::Object(map) => map,
        _ => JsonObject::new(),
    })
}

fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

impl Work {
    fn of(request: &CallToolRequestParams) -> Result<Self, ErrorData> {
        Ok(match &*request.name {
            "immediate" => Self::Immediate,
            "deferred" => {
                let arguments = request.arguments.clone().unwrap_or_default();
                let steps = serde_json::from_value(Value::Object(arguments))
                    .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
                Self::Deferred(steps)
            }
            "question" => Self::Question,
            "slow" => Self::Slow,
            "tool_error" => Self::ToolError,
            "failure" => Self::Failure,
            other => return Err(ErrorData::invalid_params(format!("Unknown tool: {other}"), None)),
        })
    }

    /// The work of a tool; `task` is there where it runs as one.
    async fn run(self, task: Option<&TaskContext>) -> Result<CallToolResult, TaskExit> {
        match self {
            Self::Immediate => Ok(text("done")),
            Self::Deferred(Steps { steps, step_ms }) => {
                for step in 1..=steps {
                    tokio::time::sleep(Duration::from_millis(step_ms)).await;
                    if let Some(task) = task {
                        task.set_status_message(format!("{step}/{steps}"));
                    }
                }
                Ok(text("done"))
            }
            Self::Question => {
                let (Some(task), Some(request)) = (task, REQUEST.clone()) else {
                    return Err(cannot_ask().into());
                };
                let answer = task.request_input(QUESTION, request).await?;
                let proceed = answer["action"] == "accept" && answer["content"]["proceed"] == true;
                Ok(text(if proceed { "done" } else { "left" }))
            }
            Self::Slow => {
                tokio::time::sleep(TTL).await;
                Ok(text("done"))
            }
            Self::ToolError => Ok(CallToolResult::error(vec![ContentBlock::text("it did not work")])),
            Self::Failure => Err(ErrorData::internal_error("the database is not there", None).into()),
        }
    }
}

/// A client without the extension cannot be asked.
fn cannot_ask() -> ErrorData {
    ErrorData::missing_required_client_capability(ClientCapabilities::builder().enable_tasks().build())
}

impl RmcpServer {
    /// A server without tasks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a tool as a task.
    fn spawn(&self, work: Work) -> rmcp::model::Task {
        let options = TaskOptions::new()
            .with_ttl_ms(Some(TTL.as_secs() * 1000))
            .with_poll_interval_ms(POLL_INTERVAL_MS);
        self.tasks.spawn(options, move |task| -> TaskFuture {
            Box::pin(async move {
                tokio::select! {
                    done = work.run(Some(&task)) => done,
                    () = task.cancelled() => Err(TaskExit::Cancelled),
                }
            })
        })
    }

    /// Adds a task that asks and is not answered.
    pub fn park(&self) {
        self.spawn(Work::Question);
    }

    /// Serves over HTTP at `/mcp` until the listener fails, and says where once it does.
    ///
    /// # Errors
    /// When the address cannot be listened on, or the listener fails.
    pub async fn serve(self, addr: &str, ready: impl FnOnce(&str)) -> io::Result<()> {
        let listener = TcpListener::bind(addr).await?;
        let local = listener.local_addr()?;
        let service = StreamableHttpService::new(
            move || Ok(self.clone()),
            Arc::new(LocalSessionManager::default()),
            StreamableHttpServerConfig::default().with_json_response(true),
        );
        // A socket that cannot do it is slower, and no reason to stop.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        ready(&format!("http://{local}/mcp"));
        axum::serve(listener, Router::new().route_service("/mcp", service)).await
    }
}

impl ServerHandler for RmcpServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tasks().build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(TOOLS.clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let work = Work::of(&request)?;
        let declared = context
            .client_capabilities()
            .is_some_and(|capabilities| capabilities.supports_tasks());
        if declared && !matches!(work, Work::Immediate) {
            return Ok(CreateTaskResult::new(self.spawn(work)).into());
        }
        let done = tokio::select! {
            done = work.run(None) => done,
            () = context.ct.cancelled() => Err(TaskExit::Cancelled),
        };
        match done {
            Ok(result) => Ok(result.into()),
            Err(TaskExit::Error(error)) => Err(error),
            Err(TaskExit::Cancelled) => Err(ErrorData::internal_error("cancelled", None)),
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.tasks.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }
}
