//! `tasks/get`, `tasks/update`, `tasks/cancel` and `tools/call`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::task::Poll;

use axum::http::request::Parts;
use axum::response::Response;
use mcp_tasks_core::{Decision, TaskId, TaskRecord, decide};
use rmcp::model::{ErrorCode, JsonObject, ServerResult};
use rmcp::{ErrorData, ServerHandler};
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::answer::{self, Acknowledgement};
use super::door::is_named;
use super::{Method, REVISION, Shared};
use crate::call::Channel;
use crate::host::task_server::answered;
use crate::host::task_server::call::{Answer, ToolCall, response};
use crate::host::task_server::declared::trace_context;
use crate::host::task_server::tasks::take_answers;
use crate::host::task_server::wire::{TaskJson, responses};
use crate::run::origin::RequestOrigin;
use crate::serve::capabilities::Declared;
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
fn decode<'a, P: Deserialize<'a>>(method: Method, body: &'a str) -> Option<Request<'a, P>> {
    let request: Request<'a, P> = message::decode(body)?;
    (request.method == method.name()).then_some(request)
}

/// Drives `work` to its end, also when the client goes away: half of it, such as a task that is stored and not started,
/// must not be left. What is done at once, as with a store in memory, needs no task of the runtime for that.
async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, ErrorData>> + Send + 'static,
) -> Result<T, ErrorData> {
    let mut work = Box::pin(answered(work));
    match futures::poll!(&mut work) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => tokio::spawn(work).await.unwrap_or_else(|error| {
            tracing::error!(%error, "the handling of a request did not end");
            Err(ErrorData::internal_error("The server failed unexpectedly", None))
        }),
    }
}

impl<H: ServerHandler> Shared<H> {
    /// What a request of this revision declares; `None` if that is not clear.
    fn declared(&self, meta: &Meta<'_>) -> Option<Declared> {
        if meta.version != REVISION {
            return None;
        }
        self.known.look(meta.capabilities)
    }

    fn client(&self, parts: &Parts, meta: &Meta<'_>, declared: &Declared) -> RequestOrigin {
        RequestOrigin {
            caller: self.runtime.caller(parts),
            capabilities: declared.json.clone(),
            trace: trace_context(meta.traceparent.as_deref(), meta.tracestate.as_deref()),
        }
    }

    /// An error, unless it says that a task is not ours and the wrapped handler has tasks of its own.
    fn refuse(&self, id: &Id<'_>, error: ErrorData) -> Option<Response> {
        let may_be_inner =
            error.code == ErrorCode::INVALID_PARAMS && (self.handler)().get_info().capabilities.supports_tasks();
        (!may_be_inner).then(|| answer::error(id, error))
    }

    pub(super) async fn get(&self, parts: &Parts, body: &str) -> Option<Response> {
        let request: Request<'_, TaskParams<'_>> = decode(Method::Get, body)?;
        let params = &request.params.0;
        let declared = self.declared(&params.meta)?;
        if !declared.tasks || !is_named(&parts.headers, &params.task_id) {
            return None;
        }
        let (engine, task) = (self.runtime.engine.clone(), TaskId::new(&params.task_id));
        let caller = answered(async { Ok(self.runtime.caller(parts)) });
        let record = match caller.await {
            Ok(caller) => to_the_end(async move { engine.get(&task, caller.principal()).await }).await,
            Err(error) => Err(error),
        };
        match record {
            Ok(record) => Some(match TaskJson::polled(&record) {
                Ok(task) => answer::task(&request.id, &task, length(&record)),
                Err(error) => answer::error(&request.id, error),
            }),
            Err(error) => self.refuse(&request.id, error),
        }
    }

    pub(super) async fn update(&self, parts: &Parts, body: &str) -> Option<Response> {
        let request: Request<'_, UpdateParams<'_>> = decode(Method::Update, body)?;
        let params = request.params.0;
        let declared = self.declared(&params.meta)?;
        if !declared.tasks || !is_named(&parts.headers, &params.task_id) {
            return None;
        }
        let (engine, task) = (self.runtime.engine.clone(), TaskId::new(&params.task_id));
        let given = responses(params.input_responses);
        let client = answered(async { Ok(self.client(parts, &params.meta, &declared)) }).await;
        let client = match client {
            Ok(client) => client,
            Err(error) => return Some(answer::error(&request.id, error)),
        };
        let caller = client.caller.clone();
        let looking = engine.clone();
        let record = match to_the_end(async move { looking.get(&task, caller.principal()).await }).await {
            Ok(record) => record,
            Err(error) => return self.refuse(&request.id, error),
        };
        let taken = to_the_end(async move { take_answers(&engine, &record, &client, given).await }).await;
        Some(acknowledge(&request.id, taken))
    }

    pub(super) async fn cancel(&self, parts: &Parts, body: &str) -> Option<Response> {
        let request: Request<'_, TaskParams<'_>> = decode(Method::Cancel, body)?;
        let params = &request.params.0;
        let declared = self.declared(&params.meta)?;
        if !declared.tasks || !is_named(&parts.headers, &params.task_id) {
            return None;
        }
        let (engine, task) = (self.runtime.engine.clone(), TaskId::new(&params.task_id));
        let caller = match answered(async { Ok(self.runtime.caller(parts)) }).await {
            Ok(caller) => caller,
            Err(error) => return Some(answer::error(&request.id, error)),
        };
        let (looking, looked_for) = (engine.clone(), task.clone());
        let found = to_the_end(async move { looking.get(&looked_for, caller.principal()).await }).await;
        if let Err(error) = found {
            return self.refuse(&request.id, error);
        }
        let cancelled = to_the_end(async move { engine.cancel(&task).await }).await;
        Some(acknowledge(&request.id, cancelled))
    }

    pub(super) async fn call(&self, parts: &Parts, body: &str) -> Option<Response> {
        let request: Request<'_, CallParams<'_>> = decode(Method::Call, body)?;
        let params = request.params.0;
        let runtime = self.runtime.clone();
        let tool = runtime.engine.registry().get(&params.name)?.clone();
        let declared = self.declared(&params.meta)?;
        if tool.has_header_params || !is_named(&parts.headers, &params.name) {
            return None;
        }
        let is_created = decide(tool.support(), declared.tasks) == Decision::Task
            && !tool.descriptor.defer()
            && params.request_state.is_none();
        if params.meta.has_progress_token && !is_created {
            // It may want an event stream for its reports.
            return None;
        }
        let client = match answered(async { Ok(self.client(parts, &params.meta, &declared)) }).await {
            Ok(client) => client,
            Err(error) => return Some(answer::error(&request.id, error)),
        };
        let gone = CancellationToken::new();
        let _goes = gone.clone().drop_guard();
        let called = to_the_end(async move {
            let call = ToolCall {
                tool: &tool,
                arguments: params.arguments.unwrap_or_default(),
                client,
                channel: Channel::Rounds {
                    state: params.request_state,
                    responses: responses(params.input_responses.unwrap_or_default()),
                },
                progress: None,
                gone,
            };
            call.carry(&runtime, || Ok(declared.tasks)).await
        });
        Some(match called.await {
            Ok(Answer::Task(record)) => answer::task(&request.id, &TaskJson::created(&record), 0),
            Ok(other) => match response(other) {
                Ok(response) => answer::result(&request.id, &ServerResult::from(response)),
                Err(error) => answer::error(&request.id, error),
            },
            Err(error) => answer::error(&request.id, error),
        })
    }
}

fn acknowledge(id: &Id<'_>, outcome: Result<(), ErrorData>) -> Response {
    match outcome {
        Ok(()) => answer::result(id, &Acknowledgement::new()),
        Err(error) => answer::error(id, error),
    }
}

/// About how long what a record holds as JSON is.
fn length(record: &TaskRecord) -> usize {
    let payload = record.result.as_ref().or(record.error.as_ref());
    let open = record
        .open
        .iter()
        .map(|asked| asked.request.get().len() + asked.key.len());
    payload.map_or(0, |json| json.get().len()) + open.sum::<usize>()
}
