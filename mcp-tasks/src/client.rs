//! A client that calls tools of any MCP server and waits for their tasks.
//!
//! ```no_run
//! use mcp_tasks::client::TaskClient;
//! use serde_json::json;
//!
//! # async fn f() -> Result<(), mcp_tasks::client::ClientError> {
//! let client = TaskClient::connect_http("http://127.0.0.1:8080/mcp").await?;
//! let result = client.call_and_wait("count_lines", json!({"path": "Cargo.toml"})).await?;
//! println!("{}", result.text());
//! # Ok(())
//! # }
//! ```
//!
//! Whether the server runs the tool inside the call or as a task makes no difference there. Where it does,
//! [`TaskClient::call`] says which, and gives a [`TaskHandle`] that can be kept, waited for, cancelled, and
//! [resumed](TaskClient::resume) in another process.
//!
//! * [`InputHandler`] answers what servers ask.
//! * [`TaskEvent`] is what an [observer](TaskClient::observed_by) is told on the way: status, progress, and when to save.
//! * [`ClientError`] tells the ways apart in which a call ends without a result.
#![cfg_attr(
    any(doc, doctest),
    doc = "* [`guide::client`](crate::guide::client) has the whole story."
)]
//!
//! A server of 2025-11-25, or one without the Tasks extension, is called through the same methods: the call returns when
//! the tool has ended.

mod builder;
mod call;
mod clock;
mod connection_handler;
mod error;
mod event;
mod handle;
mod input;
mod malformed;
mod pacing;
mod request;
mod request_error;
mod response;
mod result;
mod saved_task;
mod subscription;
mod task;
mod wait;
mod wire;

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleClient;
use rmcp::model::{
    ClientRequest, ErrorCode, ListToolsRequest, PaginatedRequestParams, ProgressNotificationParam, ServerResult, Tool,
};
use rmcp::service::{Peer, RunningService};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::process::Command;

pub use self::builder::TaskClientBuilder;
pub use self::error::{ClientError, InputNeeded, TransportError};
pub use self::event::TaskEvent;
pub use self::handle::{TaskHandle, ToolCall};
pub use self::input::{FormRequest, InputError, InputHandler, InputRequest, SamplingRequest, UrlRequest};
pub use self::pacing::Pacing;
pub use self::result::ToolResult;
pub use self::saved_task::SavedTask;
pub use self::task::{DetailedTask, TaskState};

#[doc(no_inline)]
pub use mcp_tasks_core::{Elicited, InputKind, TaskId, Timestamp};

use self::clock::Clock;
use self::connection_handler::{ConnectionHandler, ProgressRoutes};
use self::event::Observer;
use self::input::InputSupport;
use self::request::{Outgoing, Timeout, declares_per_request, verbatim};
use self::request_error::RequestError;
use self::wire::{MAX_MESSAGE, Verbatim};

/// The most pages that a list of tools is read to. A server with more has a cursor that goes nowhere.
const MAX_PAGES: usize = 1000;

/// The most that a list of tools may take in all, as text: as much as one message may.
const MAX_TOOL_LIST: usize = MAX_MESSAGE;

type Service = RunningService<RoleClient, ConnectionHandler>;

/// A client of one server. A clone uses the same connection.
#[derive(Debug, Clone)]
pub struct TaskClient {
    connection: Arc<Connection>,
    observer: Observer,
}

#[derive(Debug)]
struct Connection {
    peer: Peer<RoleClient>,
    progress: Arc<ProgressRoutes>,
    /// The service that drives the connection, unless it is the application's.
    service: Mutex<Option<Service>>,
    input_support: InputSupport,
    capabilities: Value,
    pacing: Pacing,
    clock: Clock,
    endpoint: Option<String>,
    /// Whether the connection hands on results verbatim.
    is_verbatim: bool,
    /// Whether the server has refused `subscriptions/listen` for good.
    subscriptions_unsupported: AtomicBool,
}

impl Connection {
    fn server_name(&self) -> Option<String> {
        let info = self.peer.peer_info()?;
        Some(info.server_info.as_ref()?.name.clone())
    }

    fn has_tasks(&self) -> bool {
        declares_per_request(&self.peer)
    }

    fn can_listen(&self) -> bool {
        self.is_verbatim && self.has_tasks()
    }

    async fn send(
        &self,
        request: ClientRequest,
        timeout: Timeout,
        progress: impl FnMut(ProgressNotificationParam),
    ) -> Result<ServerResult, RequestError> {
        let outgoing = Outgoing {
            request,
            timeout,
            capabilities: &self.capabilities,
        };
        request::send(&self.peer, &self.progress, outgoing, progress).await
    }

    async fn request(
        &self,
        method: &'static str,
        params: Map<String, Value>,
        mark: Verbatim,
        timeout: Timeout,
        progress: impl FnMut(ProgressNotificationParam),
    ) -> Result<Value, RequestError> {
        self.send(verbatim(method, params, mark), timeout, progress)
            .await
            .map(wire::unwrap)
    }

    /// A `tasks/*` request.
    async fn task_request(
        &self,
        method: &'static str,
        id: &TaskId,
        more: Option<(&str, Value)>,
    ) -> Result<Value, ClientError> {
        let mut params = Map::from_iter([("taskId".to_owned(), json!(id.as_str()))]);
        params.extend(more.map(|(name, value)| (name.to_owned(), value)));
        let timeout = Timeout::Answer(self.pacing.request_timeout);
        let answer = self.request(method, params, Verbatim::default(), timeout, |_| {}).await;
        answer.map_err(|error| match error {
            RequestError::Refused(error) if error.code == ErrorCode::INVALID_PARAMS && method != "tasks/update" => {
                tracing::debug!(%id, %error, "the server does not know the task");
                ClientError::UnknownTask(id.clone())
            }
            other => other.into(),
        })
    }

    async fn get(&self, id: &TaskId) -> Result<DetailedTask, ClientError> {
        Ok(response::decode_task(
            self.task_request("tasks/get", id, None).await?,
            id,
        )?)
    }

    async fn update(&self, id: &TaskId, answers: Map<String, Value>) -> Result<(), ClientError> {
        let answers = ("inputResponses", Value::Object(answers));
        let answer = self.task_request("tasks/update", id, Some(answers)).await?;
        Ok(response::decode_acknowledgement(answer, "tasks/update")?)
    }

    async fn cancel(&self, id: &TaskId) -> Result<(), ClientError> {
        let answer = self.task_request("tasks/cancel", id, None).await?;
        Ok(response::decode_acknowledgement(answer, "tasks/cancel")?)
    }
}

impl TaskClient {
    /// A client with a name, a token, a handler and so on.
    pub fn builder() -> TaskClientBuilder {
        TaskClientBuilder::default()
    }

    /// Connects over Streamable HTTP.
    ///
    /// # Errors
    /// See [`TaskClientBuilder::connect_http`].
    pub async fn connect_http(url: &str) -> Result<Self, ClientError> {
        Self::builder().connect_http(url).await
    }

    /// Starts a server as a child process and connects to its standard streams.
    ///
    /// # Errors
    /// See [`TaskClientBuilder::connect_command`].
    pub async fn connect_command(command: Command) -> Result<Self, ClientError> {
        Self::builder().connect_command(command).await
    }

    /// Uses a connection of the application's; see [`TaskClientBuilder::over`].
    #[must_use]
    pub fn over(peer: Peer<RoleClient>) -> Self {
        Self::builder().over(peer)
    }

    /// The same client, with an observer of its own for what is called and resumed through it.
    ///
    /// ```no_run
    /// use mcp_tasks::client::{TaskClient, TaskEvent};
    ///
    /// # async fn f(client: TaskClient) -> Result<(), mcp_tasks::client::ClientError> {
    /// let client = client.observed_by(|event| {
    ///     if let TaskEvent::Status(task) = event {
    ///         eprintln!("{}: {}", task.state.status(), task.status_message.as_deref().unwrap_or_default());
    ///     }
    /// });
    /// let result = client.call_and_wait("convert", serde_json::json!({"file": "a.mov"})).await?;
    /// # let _ = result;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn observed_by(&self, observe: impl Fn(TaskEvent<'_>) + Send + Sync + 'static) -> Self {
        Self {
            connection: self.connection.clone(),
            observer: Observer::new(observe),
        }
    }

    /// Whether the server takes requests that declare the Tasks extension (2026-07-28). Others run tools inside the call.
    #[must_use]
    pub fn has_tasks(&self) -> bool {
        self.connection.has_tasks()
    }

    /// The server's name, as it gave it.
    #[must_use]
    pub fn server_name(&self) -> Option<String> {
        self.connection.server_name()
    }

    /// rmcp's side of the connection, for everything that has nothing to do with tasks.
    #[must_use]
    pub fn peer(&self) -> &Peer<RoleClient> {
        &self.connection.peer
    }

    /// The server's tools, all pages of them.
    ///
    /// # Errors
    /// If the server cannot be reached, refuses, or answers something else.
    pub async fn tools(&self) -> Result<Vec<Tool>, ClientError> {
        let (mut tools, mut size) = (Vec::new(), 0);
        let mut cursors = HashSet::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor.take());
            let request = ListToolsRequest::with_param(page);
            let timeout = Timeout::Answer(self.connection.pacing.request_timeout);
            let answer = self
                .connection
                .send(ClientRequest::ListToolsRequest(request), timeout, |_| {})
                .await?;
            let ServerResult::ListToolsResult(page) = answer else {
                return Err(ClientError::protocol(
                    "the server sent something that is no list of tools",
                ));
            };
            if page.result_type.as_ref().is_some_and(|kind| !kind.is_complete()) {
                return Err(ClientError::protocol(
                    "the server sent a list of tools with another resultType",
                ));
            }
            size += serde_json::to_vec(&page.tools).map_or(0, |text| text.len());
            size += page.next_cursor.as_ref().map_or(0, String::len);
            if size > MAX_TOOL_LIST {
                return Err(ClientError::protocol(format!(
                    "the server's list of tools is longer than {MAX_TOOL_LIST} bytes"
                )));
            }
            tools.extend(page.tools);
            match page.next_cursor {
                None => return Ok(tools),
                Some(next) => {
                    if !cursors.insert(next.clone()) {
                        break;
                    }
                    cursor = Some(next);
                }
            }
        }
        Err(ClientError::protocol("the server's list of tools has no end"))
    }

    /// Calls a tool. `arguments` is anything that serialises to an object, such as a struct or [`json!`].
    ///
    /// What the server asks before there is a result or a task is answered on the way, by the client's handler.
    ///
    /// # Errors
    /// If the server cannot be reached, refuses, makes no sense, or asks something that this client has no handler for.
    ///
    /// # Cancel safety
    /// A call that is dropped before its answer is cancelled (`notifications/cancelled`). If the server has made a task of it
    /// already, the task goes on, and its id is lost.
    pub async fn call(&self, tool: &str, arguments: impl Serialize) -> Result<ToolCall, ClientError> {
        let arguments = match serde_json::to_value(arguments) {
            Ok(Value::Object(arguments)) => arguments,
            Ok(Value::Null) => Map::new(),
            Ok(_) => return Err(ClientError::protocol("the arguments of a tool are an object")),
            Err(error) => return Err(ClientError::protocol(format!("the arguments are no JSON: {error}"))),
        };
        call::call(self, tool, arguments).await
    }

    /// Calls a tool and waits for its result, whether it becomes a task or not.
    ///
    /// # Errors
    /// As [`call`](Self::call) and [`TaskHandle::wait`]. A task that goes on is in [`ClientError::task`].
    ///
    /// # Cancel safety
    /// As [`call`](Self::call) before there is a task, and as [`TaskHandle::wait`] after. The observer has been told the
    /// task by then ([`TaskEvent::Created`]).
    pub async fn call_and_wait(&self, tool: &str, arguments: impl Serialize) -> Result<ToolResult, ClientError> {
        match self.call(tool, arguments).await? {
            ToolCall::Immediate(result) => Ok(result),
            ToolCall::Deferred(mut task) => task.wait().await,
        }
    }

    /// A handle of a task that was [saved](SavedTask), or of which only the [`TaskId`] is known. Nothing is sent yet.
    ///
    /// # Errors
    /// [`OtherServer`](ClientError::OtherServer) if the task is one of a server with another name.
    pub fn resume(&self, task: impl Into<SavedTask>) -> Result<TaskHandle, ClientError> {
        let saved = task.into();
        if let (Some(expected), Some(found)) = (saved.server(), self.server_name())
            && expected != found
        {
            return Err(ClientError::OtherServer {
                expected: expected.to_owned(),
                found,
                task: Box::new(saved),
            });
        }
        Ok(TaskHandle {
            client: self.clone(),
            saved,
            is_new: false,
        })
    }

    /// The present state of a task (`tasks/get`).
    ///
    /// # Errors
    /// [`UnknownTask`](ClientError::UnknownTask) if the server does not know it, and as every request.
    pub async fn get(&self, id: &TaskId) -> Result<DetailedTask, ClientError> {
        self.connection.get(id).await
    }

    /// Answers input requests of a task, by their keys (`tasks/update`).
    ///
    /// # Errors
    /// As every request. Servers may take an answer to what they do not ask, and ignore it.
    pub async fn update(&self, id: &TaskId, answers: Map<String, Value>) -> Result<(), ClientError> {
        self.connection.update(id, answers).await
    }

    /// Cancels a task (`tasks/cancel`). The server acknowledges at once and may stop the task later, or not at all.
    ///
    /// # Errors
    /// [`UnknownTask`](ClientError::UnknownTask) if the server does not know it, and as every request.
    pub async fn cancel(&self, id: &TaskId) -> Result<(), ClientError> {
        self.connection.cancel(id).await
    }

    /// Closes the connection, and ends a child process that is its server. Without this, it is closed some time after the
    /// last clone is dropped.
    pub async fn close(self) {
        let service = self
            .connection
            .service
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(service) = service {
            let _ = service.cancel().await;
        }
    }
}
