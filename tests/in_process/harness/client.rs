//! rmcp's client, driven by hand: every request says what a test wants it to say, and what the server asks is answered by
//! a [`Person`].

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::*;
use rmcp::service::{
    NotificationContext, PeerRequestOptions, RequestContext, RequestHandle, RoleClient, RunningService, ServiceError,
};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, ServerHandler, ServiceExt};
use serde_json::{Map, Value, json};

use super::store::REPLAY;

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// What carries the questions of a tool: the rounds of a call (2026-07-28), a task, or a session (2025-11-25).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Rounds,
    Task,
    Live,
}

impl Way {
    pub(crate) const ALL: [Self; 3] = [Self::Rounds, Self::Task, Self::Live];

    /// Those of a client on it that can be asked everything.
    pub(crate) fn capabilities(self) -> Value {
        let mut capabilities = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}});
        if self == Self::Task {
            capabilities["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
        }
        capabilities
    }
}

/// Answers a request of the server's.
pub(crate) trait Person: Fn(&Value) -> Result<Value, ErrorData> + Send + Sync + 'static {}

impl<F: Fn(&Value) -> Result<Value, ErrorData> + Send + Sync + 'static> Person for F {}

/// A client without a user: it must not be asked.
pub(crate) fn no_user(request: &Value) -> Result<Value, ErrorData> {
    panic!("asked: {request}")
}

/// The answer of a person who never answers.
pub(crate) const SILENCE: &str = "silence";

pub(crate) fn accept(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

/// What the server calls, and what it has called so far.
pub(crate) struct Handler {
    config: ClientConfig,
    person: Arc<dyn Person>,
    asked: Mutex<Vec<Value>>,
    progress: Mutex<Vec<ProgressNotificationParam>>,
}

impl Handler {
    async fn answer<T: serde::de::DeserializeOwned>(&self, request: Value) -> Result<T, ErrorData> {
        self.asked.lock().unwrap().push(request.clone());
        let answer = (self.person)(&request)?;
        if answer == SILENCE {
            std::future::pending::<()>().await;
        }
        serde_json::from_value(answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }
}

#[expect(deprecated, reason = "sampling and roots are part of both revisions still")]
impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.answer(json!({"method": "elicitation/create", "params": request}))
            .await
    }

    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.answer(json!({"method": "sampling/createMessage", "params": request}))
            .await
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        self.answer(json!({"method": "roots/list"})).await
    }

    async fn on_progress(&self, report: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.lock().unwrap().push(report);
    }
}

/// What a call came to: its text and whether it is an error's, or the code and words of a JSON-RPC error.
pub(crate) type Outcome = Result<(String, bool), (i32, String)>;

pub(crate) fn done(text: impl Into<String>) -> Outcome {
    Ok((text.into(), false))
}

fn outcome(result: &Value) -> Outcome {
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    Ok((text.to_owned(), result["isError"] == true))
}

fn error(error: &Value) -> Outcome {
    let message = error["message"].as_str().unwrap_or_default();
    Err((error["code"].as_i64().unwrap() as i32, message.to_owned()))
}

/// The answer to one `tools/call`.
#[derive(Debug)]
pub(crate) enum Reply {
    Done(Outcome),
    Asked(Round),
    Task(String),
}

/// Questions by their keys, and what has to be sent back with their answers.
#[derive(Debug, Clone)]
pub(crate) struct Round {
    pub(crate) questions: Value,
    pub(crate) state: String,
}

impl Round {
    pub(crate) fn keys(&self) -> Vec<&str> {
        self.questions.as_object().unwrap().keys().map(String::as_str).collect()
    }
}

impl Reply {
    #[track_caller]
    pub(crate) fn asked(self) -> Round {
        match self {
            Self::Asked(round) => round,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn done(self) -> Outcome {
        match self {
            Self::Done(outcome) => outcome,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn task(self) -> String {
        match self {
            Self::Task(id) => id,
            other => panic!("{other:?}"),
        }
    }
}

/// A connection, and the capabilities that its requests declare; a clone is the same connection.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) service: Arc<RunningService<RoleClient, Handler>>,
    /// None in a session, which declared them when it began.
    capabilities: Option<Value>,
}

impl Client {
    /// Connects through memory.
    pub(crate) async fn connect<H: ServerHandler>(
        handler: H,
        way: Way,
        capabilities: Value,
        person: impl Person,
    ) -> Self {
        let (near, far) = tokio::io::duplex(64 * 1024);
        tokio::spawn(async move {
            if let Ok(server) = handler.serve(far).await {
                let _ = server.waiting().await;
            }
        });
        let declared = serde_json::from_value(capabilities.clone()).unwrap();
        let handler = Handler {
            config: ClientConfig::new(declared, Implementation::new("tests", "1"))
                .with_protocol_version(ProtocolVersion::V_2025_11_25),
            person: Arc::new(person),
            asked: Mutex::default(),
            progress: Mutex::default(),
        };
        let lifecycle = match way {
            Way::Live => ClientLifecycleMode::Initialize,
            _ => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
        };
        let service = handler.serve_with_lifecycle(near, lifecycle).await.unwrap();
        Self {
            service: Arc::new(service),
            capabilities: (way != Way::Live).then_some(capabilities),
        }
    }

    /// The same connection, with requests that declare these capabilities.
    pub(crate) fn declaring(&self, capabilities: Value) -> Self {
        Self {
            service: self.service.clone(),
            capabilities: Some(capabilities),
        }
    }

    /// What it was asked by the server itself.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.service.service().asked.lock().unwrap().clone()
    }

    /// The progress notifications that came in.
    pub(crate) fn progress(&self) -> Vec<ProgressNotificationParam> {
        self.service.service().progress.lock().unwrap().clone()
    }

    /// Any request, its params as they are given; its answer is to be waited for.
    pub(crate) async fn send(&self, method: &str, params: Value) -> RequestHandle<RoleClient> {
        let request = ClientRequest::CustomRequest(CustomRequest::new(method, Some(params)));
        let mut options = PeerRequestOptions::no_options();
        options.meta = self.capabilities.as_ref().map(|capabilities| {
            let mut meta = RequestMetaObject::new();
            meta.0.0.insert(CAPABILITIES.to_owned(), capabilities.clone());
            meta
        });
        self.service.send_cancellable_request(request, options).await.unwrap()
    }

    /// Any request, and its answer.
    pub(crate) async fn raw(&self, method: &str, params: Value) -> Result<Value, ErrorData> {
        match self.send(method, params).await.await_response().await {
            Ok(result) => Ok(serde_json::to_value(result).unwrap()),
            Err(ServiceError::McpError(error)) => Err(error),
            Err(other) => panic!("{other:?}"),
        }
    }

    /// `tools/call`.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, ErrorData> {
        self.raw("tools/call", json!({"name": tool, "arguments": arguments}))
            .await
    }

    /// `tools/call`, with whatever members `more` adds to its params.
    pub(crate) async fn call_with(&self, tool: &str, arguments: &Value, more: Value) -> Reply {
        let mut params = json!({"name": tool, "arguments": arguments});
        params.as_object_mut().unwrap().extend(object(more));
        let result = match self.raw("tools/call", params).await {
            Ok(result) => result,
            Err(data) => return Reply::Done(error(&serde_json::to_value(data).unwrap())),
        };
        match result["resultType"].as_str() {
            Some("input_required") => Reply::Asked(Round {
                questions: result["inputRequests"].clone(),
                state: result["requestState"].as_str().unwrap().to_owned(),
            }),
            Some("task") => Reply::Task(result["taskId"].as_str().unwrap().to_owned()),
            _ => Reply::Done(outcome(&result)),
        }
    }

    /// `tools/call` for the first time.
    pub(crate) async fn begin(&self, tool: &str, arguments: &Value) -> Reply {
        self.call_with(tool, arguments, json!({})).await
    }

    /// `tools/call` once more, with answers to the questions of `round`.
    pub(crate) async fn retry(&self, tool: &str, arguments: &Value, round: &Round, responses: Value) -> Reply {
        let more = json!({"requestState": round.state, "inputResponses": responses});
        self.call_with(tool, arguments, more).await
    }

    /// `tools/call` that becomes a task; its id.
    pub(crate) async fn start(&self, tool: &str, arguments: Value) -> String {
        self.begin(tool, &arguments).await.task()
    }

    /// `tools/call` that is taken back with `notifications/cancelled` after a while, when `after` is over; its answer, if
    /// there is one.
    pub(crate) async fn call_taken_back(&self, tool: &str, arguments: Value, after: Duration) -> Option<Value> {
        let call = json!({"name": tool, "arguments": arguments});
        let handle = self.send("tools/call", call).await;
        let id = handle.id.clone();
        tokio::time::sleep(after).await;
        let params = CancelledNotificationParam::new(Some(id), None);
        self.service.notify_cancelled(params).await.expect("it can be sent");
        let answer = tokio::time::timeout(Duration::from_secs(1), handle.await_response()).await;
        let result = answer.ok()?.ok()?;
        Some(serde_json::to_value(result).unwrap())
    }

    /// `tasks/get`.
    pub(crate) async fn get(&self, id: &str) -> Result<Value, ErrorData> {
        self.raw("tasks/get", json!({"taskId": id})).await
    }

    /// `tasks/get` of a task that is there.
    pub(crate) async fn task(&self, id: &str) -> Value {
        self.get(id).await.expect("the task is there")
    }

    /// `tasks/update`.
    pub(crate) async fn update(&self, id: &str, responses: Value) -> Result<(), ErrorData> {
        let params = json!({"taskId": id, "inputResponses": responses});
        self.raw("tasks/update", params).await.map(drop)
    }

    /// `tasks/update` that is acknowledged.
    pub(crate) async fn answer(&self, id: &str, responses: Value) {
        self.update(id, responses).await.expect("answers are acknowledged");
    }

    /// `tasks/update` that accepts one form.
    pub(crate) async fn accept(&self, id: &str, key: &str, content: Value) {
        self.answer(id, json!({key: accept(content)})).await;
    }

    /// `tasks/update` that gives one word.
    pub(crate) async fn say(&self, id: &str, key: &str, word: &str) {
        self.accept(id, key, json!({"word": word})).await;
    }

    /// `tasks/cancel`.
    pub(crate) async fn cancel(&self, id: &str) -> Result<(), ErrorData> {
        self.raw("tasks/cancel", json!({"taskId": id})).await.map(drop)
    }

    /// The task once it works no more: it asks something, or has ended. Where executions are disturbed, it is told to go
    /// on until then.
    pub(crate) async fn settled(&self, id: &str) -> Value {
        for look in 0..100_000 {
            let task = self.task(id).await;
            // What sleeps for long is not looked at thousands of times.
            let pause = Duration::from_millis(if look < 400 { 5 } else { 500 });
            match status(&task) {
                "working" => tokio::time::sleep(pause).await,
                "input_required" if keys(&task) == [REPLAY] => {
                    self.answer(id, json!({REPLAY: {"action": "decline"}})).await;
                }
                _ => return task,
            }
        }
        panic!("the task never comes to an end: {}", self.task(id).await);
    }

    fn answers(&self, questions: &Value) -> Value {
        let person = &self.service.service().person;
        let questions = questions.as_object().unwrap().iter();
        questions
            .map(|(key, request)| (key.clone(), person(request).unwrap()))
            .collect()
    }

    /// Calls the tool and answers all it asks until it is over.
    pub(crate) async fn converse(&self, tool: &str, arguments: Value) -> Outcome {
        let mut reply = self.begin(tool, &arguments).await;
        for _ in 0..100 {
            match reply {
                Reply::Done(outcome) => return outcome,
                Reply::Asked(round) => {
                    let answers = self.answers(&round.questions);
                    reply = self.retry(tool, &arguments, &round, answers).await;
                }
                Reply::Task(id) => return self.see_through(&id).await,
            }
        }
        panic!("{tool} asks without an end")
    }

    /// Answers all the task asks until it is over.
    pub(crate) async fn see_through(&self, id: &str) -> Outcome {
        for _ in 0..100 {
            let task = self.settled(id).await;
            match status(&task) {
                "completed" => return outcome(&task["result"]),
                "failed" => return error(&task["error"]),
                "input_required" => self.answer(id, self.answers(&task["inputRequests"])).await,
                _ => panic!("{task}"),
            }
        }
        panic!("{id} asks without an end")
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

/// The status of a task.
pub(crate) fn status(task: &Value) -> &str {
    task["status"].as_str().expect("a task has a status")
}

/// The keys of the questions a task asks.
pub(crate) fn keys(task: &Value) -> Vec<&str> {
    task["inputRequests"]
        .as_object()
        .map(|requests| requests.keys().map(String::as_str).collect())
        .unwrap_or_default()
}

/// The text of a completed task's result.
pub(crate) fn text(task: &Value) -> &str {
    assert_eq!(status(task), "completed", "{task}");
    task["result"]["content"][0]["text"]
        .as_str()
        .expect("the result is text")
}

/// The code of a failed task's error.
pub(crate) fn code(task: &Value) -> i64 {
    assert_eq!(status(task), "failed", "{task}");
    task["error"]["code"].as_i64().expect("an error has a code")
}
