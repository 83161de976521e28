//! `tasks/get`, `tasks/update`, `tasks/cancel` and `tools/call`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use axum::http::request::Parts;
use axum::response::Response;
use mcp_tasks_core::TaskId;
use rmcp::model::{JsonObject, ServerResult};
use rmcp::{ErrorData, ServerHandler};
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::gate::is_named;
use super::response::{self, Acknowledgement};
use super::{FastPath, McpMethod, REVISION};
use crate::call::Channel;
use crate::host::capabilities::DeclaredCapabilities;
use crate::host::extension::TasksExtension;
use crate::host::operations::Answer;
use crate::host::operations::{CallTool, CancelTask, GetTask, TaskRefusal, UpdateTask, becomes_task_at_once};
use crate::host::trace_context::trace_context;
use crate::host::wire::{TaskJson, call_response, responses};
use crate::run::origin::RequestOrigin;
use crate::serve::message::{self, Id, Meta, Request};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TaskParams<'a> {
    #[serde(rename = "_meta", borrow)]
    meta: Meta<'a>,
    #[serde(borrow)]
    task_id: Cow<'a, str>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct UpdateParams<'a> {
    #[serde(rename = "_meta", borrow)]
    meta: Meta<'a>,
    #[serde(borrow)]
    task_id: Cow<'a, str>,
    input_responses: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CallParams<'a> {
    #[serde(rename = "_meta", borrow)]
    meta: Meta<'a>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(default)]
    arguments: Option<JsonObject>,
    #[serde(default)]
    input_responses: Option<BTreeMap<String, Value>>,
    #[serde(default)]
    request_state: Option<String>,
}

/// The request, if its body is what its headers say it is.
fn decode<'a, P: Deserialize<'a>>(method: McpMethod, body: &'a str) -> Option<Request<'a, P>> {
    let request: Request<'a, P> = message::decode(body)?;
    (request.method == method.name()).then_some(request)
}

impl<H: ServerHandler> FastPath<H> {
    /// What a request of this revision declares; `None` if that is not clear.
    fn declared(&self, meta: &Meta<'_>) -> Option<DeclaredCapabilities> {
        if meta.version != REVISION {
            return None;
        }
        self.operations.capabilities().read(meta.capabilities.get())
    }

    /// What a request about a task declares; `None` also if it is not the extension, or its name is not the task's id.
    fn declared_for_task(&self, parts: &Parts, meta: &Meta<'_>, id: &str) -> Option<DeclaredCapabilities> {
        let declared = self.declared(meta)?;
        (declared.extension == TasksExtension::Declared && is_named(&parts.headers, id)).then_some(declared)
    }

    fn client(
        &self,
        parts: &Parts,
        meta: &Meta<'_>,
        declared: DeclaredCapabilities,
    ) -> Result<RequestOrigin, ErrorData> {
        Ok(RequestOrigin {
            caller: self.operations.caller(parts)?,
            capabilities: declared.capabilities,
            trace: trace_context(meta.traceparent.as_deref(), meta.tracestate.as_deref()),
        })
    }

    /// The error, unless the task is unknown here and the wrapped handler has tasks of its own.
    fn refuse(&self, id: &Id<'_>, refusal: TaskRefusal) -> Option<Response> {
        let may_be_inner =
            matches!(refusal, TaskRefusal::Unknown) && (self.handler)().get_info().capabilities.supports_tasks();
        (!may_be_inner).then(|| response::error(id, refusal.into()))
    }

    fn acknowledge(&self, id: &Id<'_>, outcome: Result<(), TaskRefusal>) -> Option<Response> {
        match outcome {
            Ok(()) => Some(response::result(id, &Acknowledgement::new())),
            Err(refusal) => self.refuse(id, refusal),
        }
    }

    pub(super) async fn get(&self, parts: &Parts, body: &str) -> Option<Response> {
        let request: Request<'_, TaskParams<'_>> = decode(McpMethod::Get, body)?;
        let params = &request.params.0;
        let declared = self.declared_for_task(parts, &params.meta, &params.task_id)?;
        let caller = match self.operations.caller(parts) {
            Ok(caller) => caller,
            Err(error) => return Some(response::error(&request.id, error)),
        };
        let get = GetTask {
            id: TaskId::new(&params.task_id),
            caller,
            extension: declared.extension,
        };
        match self.operations.get(get).await {
            Ok(record) => Some(match TaskJson::polled(&record) {
                Ok(task) => response::task(&request.id, &task),
                Err(error) => response::error(&request.id, error),
            }),
            Err(refusal) => self.refuse(&request.id, refusal),
        }
    }

    pub(super) async fn update(&self, parts: &Parts, body: &str) -> Option<Response> {
        let request: Request<'_, UpdateParams<'_>> = decode(McpMethod::Update, body)?;
        let params = request.params.0;
        let declared = self.declared_for_task(parts, &params.meta, &params.task_id)?;
        let extension = declared.extension;
        let client = match self.client(parts, &params.meta, declared) {
            Ok(client) => client,
            Err(error) => return Some(response::error(&request.id, error)),
        };
        let update = UpdateTask {
            id: TaskId::new(&params.task_id),
            client,
            extension,
            responses: responses(&params.input_responses),
        };
        self.acknowledge(&request.id, self.operations.update(update).await)
    }

    pub(super) async fn cancel(&self, parts: &Parts, body: &str) -> Option<Response> {
        let request: Request<'_, TaskParams<'_>> = decode(McpMethod::Cancel, body)?;
        let params = &request.params.0;
        let declared = self.declared_for_task(parts, &params.meta, &params.task_id)?;
        let caller = match self.operations.caller(parts) {
            Ok(caller) => caller,
            Err(error) => return Some(response::error(&request.id, error)),
        };
        let cancel = CancelTask {
            id: TaskId::new(&params.task_id),
            caller,
            extension: declared.extension,
        };
        self.acknowledge(&request.id, self.operations.cancel(cancel).await)
    }

    pub(super) async fn call(&self, parts: &Parts, body: &str) -> Option<Response> {
        let request: Request<'_, CallParams<'_>> = decode(McpMethod::Call, body)?;
        let params = request.params.0;
        let tool = self.operations.tool(&params.name)?.clone();
        let declared = self.declared(&params.meta)?;
        let extension = declared.extension;
        if tool.has_header_params || !is_named(&parts.headers, &params.name) {
            return None;
        }
        let has_state = params.request_state.is_some();
        if params.meta.has_progress_token && !becomes_task_at_once(&tool, extension, has_state) {
            // It may want an event stream for its reports.
            return None;
        }
        let client = match self.client(parts, &params.meta, declared) {
            Ok(client) => client,
            Err(error) => return Some(response::error(&request.id, error)),
        };
        let gone = CancellationToken::new();
        let _fires_gone = gone.clone().drop_guard();
        let call = CallTool {
            tool,
            arguments: params.arguments.unwrap_or_default(),
            client,
            extension,
            channel: Channel::Rounds {
                state: params.request_state,
                responses: responses(&params.input_responses.unwrap_or_default()),
            },
            progress: None,
            gone,
        };
        Some(match self.operations.call(call).await {
            Ok(Answer::Task(record)) => response::task(&request.id, &TaskJson::created(&record)),
            Ok(other) => match call_response(other) {
                Ok(response) => response::result(&request.id, &ServerResult::from(response)),
                Err(error) => response::error(&request.id, error),
            },
            Err(error) => response::error(&request.id, error),
        })
    }
}
