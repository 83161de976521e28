//! A server and its clients.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_tasks::{Clock, Config, MemoryStore, TaskId, TaskRuntime, TaskStore};
use mcp_tasks_core::store::{Mutation, StoreFuture, Updated};
use mcp_tasks_core::{TaskRecord, Timestamp, WriteId};
use rmcp::model::*;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, NotificationContext, RequestContext, RunningService};
use rmcp::service::{RoleClient, ServiceError};
use rmcp::{ClientHandler, ServiceExt};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::tools::{self, Work};

/// The system's clock at the start, moved by tokio's time from then on.
#[derive(Debug)]
pub(crate) struct TestClock {
    start: Instant,
    skipped: AtomicU64,
}

impl TestClock {
    /// Moves this clock, and no timer of tokio's.
    pub(crate) fn skip(&self, time: Duration) {
        self.skipped.fetch_add(time.as_millis() as u64, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        let skipped = Duration::from_millis(self.skipped.load(Ordering::SeqCst));
        Timestamp::from_millis(1_800_000_000_000).saturating_add(self.start.elapsed() + skipped)
    }
}

/// The memory store, which counts what is created and can take its time over it.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    inner: MemoryStore,
    creates: AtomicUsize,
    slow: Mutex<Duration>,
}

impl Counting {
    pub(crate) fn creates(&self) -> usize {
        self.creates.load(Ordering::SeqCst)
    }

    pub(crate) fn slow_down(&self, creates: Duration) {
        *self.slow.lock().unwrap() = creates;
    }
}

impl TaskStore for Counting {
    fn create(&self, record: TaskRecord) -> StoreFuture<'_, Arc<TaskRecord>> {
        self.creates.fetch_add(1, Ordering::SeqCst);
        let slow = *self.slow.lock().unwrap();
        Box::pin(async move {
            if !slow.is_zero() {
                tokio::time::sleep(slow).await;
            }
            self.inner.create(record).await
        })
    }

    fn get<'a>(&'a self, id: &'a TaskId, now: Timestamp) -> StoreFuture<'a, Option<Arc<TaskRecord>>> {
        self.inner.get(id, now)
    }

    fn update<'a>(
        &'a self,
        id: &'a TaskId,
        now: Timestamp,
        write: WriteId,
        mutation: Mutation,
    ) -> StoreFuture<'a, Option<Updated>> {
        self.inner.update(id, now, write, mutation)
    }

    fn delete<'a>(&'a self, id: &'a TaskId) -> StoreFuture<'a, ()> {
        self.inner.delete(id)
    }
}

/// A server with the tools of these tests.
pub(crate) struct Lab {
    runtime: TaskRuntime,
    pub(crate) store: Arc<Counting>,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) work: Work,
}

/// Sealing keys that two servers share.
const KEYS: &str = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVoxMjM0NTY=";

impl Lab {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(settings: &[(&str, &str)]) -> Self {
        let store = Arc::new(Counting::default());
        let clock = Arc::new(TestClock {
            start: Instant::now(),
            skipped: AtomicU64::new(0),
        });
        Self::on(store, clock, Work::default(), settings)
    }

    /// Another build of the same server: same store, same clock, other settings.
    pub(crate) fn sibling(&self, settings: &[(&str, &str)]) -> Self {
        Self::on(self.store.clone(), self.clock.clone(), self.work.clone(), settings)
    }

    fn on(store: Arc<Counting>, clock: Arc<TestClock>, work: Work, settings: &[(&str, &str)]) -> Self {
        let mut config = Config::builder()
            .without_file()
            .set("mcp.tasks.request-state.keys", KEYS)
            .set("mcp.tasks.request-state.ttl", "PT1M");
        for (key, value) in settings {
            config = config.set(*key, *value);
        }
        let runtime = TaskRuntime::builder()
            .config(config.build().unwrap())
            .state(work.clone())
            .store(store.clone())
            .clock(clock.clone());
        let runtime = tools::register(runtime.without_inventory()).build().unwrap();
        Self {
            runtime,
            store,
            clock,
            work,
        }
    }

    /// A client that is asked everything and says what `person` says.
    pub(crate) async fn client(&self, way: Way, person: impl Person) -> Client {
        self.client_with(way, way.capabilities(), person).await
    }

    pub(crate) async fn client_with(&self, way: Way, capabilities: Value, person: impl Person) -> Client {
        let (near, far) = tokio::io::duplex(1 << 16);
        let handler = self.runtime.handler();
        tokio::spawn(async move {
            if let Ok(server) = handler.serve(far).await {
                let _ = server.waiting().await;
            }
        });
        let capabilities = serde_json::from_value(capabilities).unwrap();
        let handler = Handler {
            config: ClientConfig::new(capabilities, Implementation::new("tests", "1"))
                .with_protocol_version(ProtocolVersion::V_2025_11_25),
            person: Arc::new(person),
            asked: Arc::default(),
            progress: Arc::default(),
        };
        let (asked, progress) = (handler.asked.clone(), handler.progress.clone());
        let lifecycle = match way {
            Way::Live => ClientLifecycleMode::Initialize,
            _ => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
        };
        let service = handler.serve_with_lifecycle(near, lifecycle).await.unwrap();
        Client {
            service,
            asked,
            progress,
        }
    }

    /// What `tool` comes to for a client that answers as `person` does.
    pub(crate) async fn run(&self, way: Way, tool: &'static str, arguments: Value, person: impl Person) -> Outcome {
        let client = self.client(way, person).await;
        client.converse(tool, arguments).await
    }
}

/// What carries the questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Rounds,
    Task,
    Live,
}

impl Way {
    pub(crate) const ALL: [Self; 3] = [Self::Rounds, Self::Task, Self::Live];

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

pub(crate) fn accept(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

/// Says yes to everything.
pub(crate) fn yes(_: &Value) -> Result<Value, ErrorData> {
    Ok(accept(json!({"go": true})))
}

/// Must not be asked.
pub(crate) fn nobody(request: &Value) -> Result<Value, ErrorData> {
    panic!("asked: {request}")
}

pub(crate) struct Handler {
    config: ClientConfig,
    person: Arc<dyn Person>,
    asked: Arc<Mutex<Vec<Value>>>,
    progress: Arc<Mutex<Vec<f64>>>,
}

impl Handler {
    fn answer<T: serde::de::DeserializeOwned>(&self, request: Value) -> Result<T, ErrorData> {
        self.asked.lock().unwrap().push(request.clone());
        let answer = (self.person)(&request)?;
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
    }

    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.answer(json!({"method": "sampling/createMessage", "params": request}))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        self.answer(json!({"method": "roots/list"}))
    }

    async fn on_progress(&self, report: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.lock().unwrap().push(report.progress);
    }
}

/// What a call came to: its text and whether it is an error's, or the code and words of a JSON-RPC error.
pub(crate) type Outcome = Result<(String, bool), (i32, String)>;

pub(crate) fn done(text: impl Into<String>) -> Outcome {
    Ok((text.into(), false))
}

pub(crate) struct Client {
    pub(crate) service: RunningService<RoleClient, Handler>,
    asked: Arc<Mutex<Vec<Value>>>,
    progress: Arc<Mutex<Vec<f64>>>,
}

/// The answer to one request of the client's.
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

fn outcome(result: &Value) -> Outcome {
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    Ok((text.to_owned(), result["isError"] == true))
}

fn error(error: &Value) -> Outcome {
    let message = error["message"].as_str().unwrap_or_default();
    Err((error["code"].as_i64().unwrap() as i32, message.to_owned()))
}

impl Client {
    /// What it was asked by the server itself.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn progress(&self) -> Vec<f64> {
        self.progress.lock().unwrap().clone()
    }

    /// Any request, its params as they are given.
    pub(crate) async fn raw(&self, method: &str, params: Value) -> Result<Value, ErrorData> {
        let request = ClientRequest::CustomRequest(CustomRequest::new(method, Some(params)));
        match self.service.send_request(request).await {
            Ok(result) => Ok(serde_json::to_value(result).unwrap()),
            Err(ServiceError::McpError(error)) => Err(error),
            Err(other) => panic!("{other:?}"),
        }
    }

    /// One `tools/call`, with whatever members `more` adds to its params.
    pub(crate) async fn call(&self, tool: &str, arguments: &Value, more: Value) -> Reply {
        let mut params = json!({"name": tool, "arguments": arguments});
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
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

    pub(crate) async fn begin(&self, tool: &str, arguments: &Value) -> Reply {
        self.call(tool, arguments, json!({})).await
    }

    pub(crate) async fn retry(&self, tool: &str, arguments: &Value, round: &Round, responses: Value) -> Reply {
        let more = json!({"requestState": round.state, "inputResponses": responses});
        self.call(tool, arguments, more).await
    }

    pub(crate) async fn get(&self, id: &str) -> Value {
        self.raw("tasks/get", json!({"taskId": id})).await.unwrap()
    }

    pub(crate) async fn update(&self, id: &str, responses: Value) {
        let params = json!({"taskId": id, "inputResponses": responses});
        self.raw("tasks/update", params).await.unwrap();
    }

    /// The task, once it no longer works.
    pub(crate) async fn settled(&self, id: &str) -> Value {
        let look = async {
            loop {
                let task = self.get(id).await;
                if task["status"] != "working" {
                    return task;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(600), look).await.unwrap()
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
            match task["status"].as_str() {
                Some("completed") => return outcome(&task["result"]),
                Some("failed") => return error(&task["error"]),
                Some("input_required") => self.update(id, self.answers(&task["inputRequests"])).await,
                _ => panic!("{task}"),
            }
        }
        panic!("{id} asks without an end")
    }
}
