//! An rmcp client whose every request says what a test wants it to say.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelTaskParams, CancelTaskRequest, CancelledNotificationParam,
    ClientRequest, CustomRequest, GetTaskParams, GetTaskRequest, ProgressNotificationParam, ProtocolVersion,
    RequestMetaObject, UpdateTaskParams, UpdateTaskRequest,
};
use rmcp::service::{NotificationContext, PeerRequestOptions, RunningService};
use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient, ServerHandler, ServiceError,
    ServiceExt,
};
use serde_json::{Map, Value, json};

use super::store::REPLAY;

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// What a client receives besides answers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Received {
    progress: Arc<Mutex<Vec<ProgressNotificationParam>>>,
}

impl ClientHandler for Received {
    fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) -> impl Future<Output = ()> + Send + '_ {
        self.progress.lock().expect("no test panics inside").push(params);
        std::future::ready(())
    }
}

/// A client of the 2026-07-28 revision.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    service: Arc<RunningService<RoleClient, Received>>,
    capabilities: Value,
}

impl Client {
    /// Connects through memory.
    pub(crate) async fn connect<H: ServerHandler>(handler: H) -> Self {
        let (near, far) = tokio::io::duplex(64 * 1024);
        tokio::spawn(async move {
            let server = handler.serve(far).await.expect("the server starts");
            let _ = server.waiting().await;
        });
        let lifecycle = ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        };
        let service = Received::default()
            .serve_with_lifecycle(near, lifecycle)
            .await
            .expect("the client starts");
        Self {
            service: Arc::new(service),
            capabilities: json!({
                "elicitation": {"form": {}},
                "extensions": {"io.modelcontextprotocol/tasks": {}},
            }),
        }
    }

    /// The same connection, with requests that declare these capabilities.
    pub(crate) fn declaring(&self, capabilities: Value) -> Self {
        Self {
            service: self.service.clone(),
            capabilities,
        }
    }

    /// The progress notifications that came in.
    pub(crate) fn progress(&self) -> Vec<ProgressNotificationParam> {
        let received = self.service.service();
        received.progress.lock().expect("no test panics inside").clone()
    }

    async fn request(&self, request: ClientRequest) -> Result<Value, ErrorData> {
        let mut meta = RequestMetaObject::new();
        meta.0.0.insert(CAPABILITIES.to_owned(), self.capabilities.clone());
        let mut options = PeerRequestOptions::no_options();
        options.meta = Some(meta);
        let handle = self
            .service
            .send_request_with_option(request, options)
            .await
            .expect("the request can be sent");
        match handle.await_response().await {
            Ok(result) => Ok(serde_json::to_value(result).expect("a result has a JSON form")),
            Err(ServiceError::McpError(error)) => Err(error),
            Err(other) => panic!("{other}"),
        }
    }

    /// A request that rmcp has no type for, or malformed params.
    pub(crate) async fn raw(&self, method: &str, params: Value) -> Result<Value, ErrorData> {
        self.request(ClientRequest::CustomRequest(CustomRequest::new(method, Some(params))))
            .await
    }

    /// `tools/call`.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, ErrorData> {
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.arguments = Some(object(arguments));
        self.request(ClientRequest::CallToolRequest(CallToolRequest::new(params)))
            .await
    }

    /// `tools/call` once more, with answers to the questions of `round`.
    pub(crate) async fn call_again(
        &self,
        tool: &str,
        arguments: Value,
        round: &Value,
        responses: Value,
    ) -> Result<Value, ErrorData> {
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.arguments = Some(object(arguments));
        params.input_responses = Some(object(responses).into_iter().collect());
        params.request_state = round["requestState"].as_str().map(str::to_owned);
        self.request(ClientRequest::CallToolRequest(CallToolRequest::new(params)))
            .await
    }

    /// `tools/call` that is taken back with `notifications/cancelled` after a while, when `after` is over; its answer, if
    /// there is one.
    pub(crate) async fn call_taken_back(&self, tool: &str, after: Duration) -> Option<Value> {
        let mut meta = RequestMetaObject::new();
        meta.0.0.insert(CAPABILITIES.to_owned(), self.capabilities.clone());
        let mut options = PeerRequestOptions::no_options();
        options.meta = Some(meta);
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.arguments = Some(Map::new());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let handle = self
            .service
            .send_cancellable_request(request, options)
            .await
            .expect("it can be sent");
        let id = handle.id.clone();
        tokio::time::sleep(after).await;
        let params = CancelledNotificationParam::new(Some(id), None);
        self.service.notify_cancelled(params).await.expect("it can be sent");
        let answer = tokio::time::timeout(Duration::from_secs(1), handle.await_response()).await;
        let result = answer.ok()?.ok()?;
        Some(serde_json::to_value(result).expect("a result has a JSON form"))
    }

    /// `tools/call` that becomes a task; its id.
    pub(crate) async fn start(&self, tool: &str, arguments: Value) -> String {
        let created = self.call(tool, arguments).await.expect("the call is accepted");
        assert_eq!(created["resultType"], "task", "{created}");
        created["taskId"].as_str().expect("a task has an id").to_owned()
    }

    /// `tasks/get`.
    pub(crate) async fn get(&self, id: &str) -> Result<Value, ErrorData> {
        self.request(ClientRequest::GetTaskRequest(GetTaskRequest::new(GetTaskParams::new(
            id,
        ))))
        .await
    }

    /// `tasks/get` of a task that is there.
    pub(crate) async fn task(&self, id: &str) -> Value {
        self.get(id).await.expect("the task is there")
    }

    /// `tasks/update`.
    pub(crate) async fn update(&self, id: &str, responses: Value) -> Result<(), ErrorData> {
        let responses = object(responses).into_iter().collect();
        let params = UpdateTaskParams::new(id, responses);
        self.request(ClientRequest::UpdateTaskRequest(UpdateTaskRequest::new(params)))
            .await
            .map(drop)
    }

    /// `tasks/update` that accepts one form.
    pub(crate) async fn accept(&self, id: &str, key: &str, content: Value) {
        self.update(id, json!({key: {"action": "accept", "content": content}}))
            .await
            .expect("answers are acknowledged");
    }

    /// `tasks/update` that gives one word.
    pub(crate) async fn say(&self, id: &str, key: &str, word: &str) {
        self.accept(id, key, json!({"word": word})).await;
    }

    /// `tasks/cancel`.
    pub(crate) async fn cancel(&self, id: &str) -> Result<(), ErrorData> {
        self.request(ClientRequest::CancelTaskRequest(CancelTaskRequest::new(
            CancelTaskParams::new(id),
        )))
        .await
        .map(drop)
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
                    let go_on = json!({REPLAY: {"action": "decline"}});
                    self.update(id, go_on).await.expect("answers are acknowledged");
                }
                _ => return task,
            }
        }
        panic!("the task never comes to an end: {}", self.task(id).await);
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
