//! Every kind of tool and every end of a task, on our own server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_tasks::TaskId;
use mcp_tasks::client::{
    ClientError, Pacing, SavedTask, TaskClient, TaskClientBuilder, TaskEvent, TaskState, ToolCall,
};
use mcp_tasks::context::InputKind;
use mcp_tasks::host::Clock;
use mcp_tasks::prelude::*;
use mcp_tasks::testing::TokioClock;
use rmcp::model::{ErrorCode, ProtocolVersion};
use rmcp::service::ClientLifecycleMode;
use rmcp::{ErrorData, ServiceExt};
use serde_json::{Value, json};

use crate::client::harness::User;

#[derive(Debug, Deserialize, JsonSchema, ElicitForm)]
struct Confirm {
    /// Go on
    confirm: bool,
}

/// Never a task.
#[mcp_tool]
async fn plain(text: String) -> String {
    text
}

/// A task that reports.
#[mcp_task(poll_interval = "PT0.1S")]
async fn steps(ctx: ToolContext) -> &'static str {
    for n in 1..=3 {
        ctx.progress(f64::from(n))
            .total(3.0)
            .message(format!("step {n}"))
            .send();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    "three steps"
}

/// A task or nothing.
#[mcp_task(required)]
async fn required() -> &'static str {
    "as a task"
}

/// Asks one thing after the other.
#[mcp_task]
async fn ask(ctx: ToolContext) -> Result<String, ToolError> {
    let first = ctx.elicit::<Confirm>("First?").await?.accepted();
    let second = ctx.elicit::<Confirm>("Second?").await?.accepted();
    let words = [first, second].map(|answer| answer.map_or("no", |form| if form.confirm { "yes" } else { "no" }));
    Ok(words.join(" "))
}

/// Asks everything at once.
#[mcp_task]
async fn ask_all(ctx: ToolContext) -> Result<String, ToolError> {
    let params = json!({"messages": [{"role": "user", "content": {"type": "text", "text": "?"}}], "maxTokens": 7});
    let (form, url, completion, roots) = tokio::join!(
        ctx.elicit::<Confirm>("Form?").key("form"),
        ctx.elicit_url("Url?", "https://example.com/x").key("url"),
        ctx.sample::<Value>(&params).key("completion"),
        ctx.roots::<Value>().key("roots"),
    );
    let (form, url, roots) = (form?.accepted(), url?, roots?);
    let _ = completion?;
    let roots = roots["roots"].as_array().map_or(0, Vec::len);
    Ok(format!("{} {url:?} {roots}", form.is_some_and(|form| form.confirm)))
}

/// A tool's own failure.
#[mcp_task]
async fn fail() -> Result<(), ToolError> {
    Err(ToolError::new("the disk is full"))
}

/// A JSON-RPC error.
#[mcp_task]
async fn break_down() -> Result<(), ToolError> {
    Err(ToolError::protocol(ErrorData::new(
        ErrorCode(-32050),
        "out of order",
        None,
    )))
}

/// Never ends by itself.
#[mcp_task(ttl = "PT10M")]
async fn for_ever() {
    std::future::pending().await
}

/// Never a task, and asks.
#[mcp_tool]
async fn ask_inside(ctx: ToolContext) -> Result<bool, ToolError> {
    Ok(ctx
        .elicit::<Confirm>("Inside?")
        .await?
        .accepted()
        .is_some_and(|form| form.confirm))
}

/// A server of these tools.
pub(crate) struct Server {
    runtime: TaskRuntime,
    clock: Arc<TokioClock>,
}

impl Server {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(TokioClock::new());
        let runtime = TaskRuntime::builder().clock(clock.clone()).build().unwrap();
        Self { runtime, clock }
    }

    fn stream(&self) -> tokio::io::DuplexStream {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let handler = self.runtime.handler();
        tokio::spawn(async move {
            let server = handler.serve(far).await.unwrap();
            let _ = server.waiting().await;
        });
        near
    }

    pub(crate) async fn client(&self, builder: TaskClientBuilder) -> TaskClient {
        let (reader, writer) = tokio::io::split(self.stream());
        let clock = self.clock.clone();
        builder
            .clock(move || clock.now())
            .connect_io(reader, writer)
            .await
            .unwrap()
    }
}

fn asking(user: &User) -> TaskClientBuilder {
    TaskClient::builder().input(user.clone())
}

async fn deferred(client: &TaskClient, tool: &str) -> mcp_tasks::client::TaskHandle {
    match client.call(tool, json!({})).await.unwrap() {
        ToolCall::Deferred(task) => task,
        ToolCall::Immediate(result) => panic!("{result:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_no_task_answers_at_once() {
    let client = Server::new().client(TaskClient::builder()).await;
    let answer = client.call("plain", json!({"text": "t"})).await.unwrap();
    assert!(
        matches!(&answer, ToolCall::Immediate(result) if result.text() == "t"),
        "{answer:?}"
    );
    let tools = client.tools().await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == "steps"));
}

#[tokio::test(start_paused = true)]
async fn a_task_is_waited_for_and_its_status_observed() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = seen.clone();
    let builder = TaskClient::builder().observe(move |event| {
        let line = match event {
            TaskEvent::Created(task) => format!("created by {}", task.tool().unwrap()),
            TaskEvent::Status(task) => {
                format!(
                    "{} {}",
                    task.state.status(),
                    task.status_message.as_deref().unwrap_or("-")
                )
            }
            _ => return,
        };
        log.lock().unwrap().push(line);
    });
    let client = Server::new().client(builder).await;
    let result = client.call_and_wait("steps", json!({})).await.unwrap();
    assert_eq!(result.text(), "three steps");
    assert_eq!(result.to_rmcp().unwrap().content.len(), 1);
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0], "created by steps");
    for step in 1..=3 {
        assert!(
            seen.iter().any(|line| line.contains(&format!("step {step}"))),
            "{seen:?}"
        );
    }
    assert!(seen.last().unwrap().starts_with("completed"), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_task_tool_that_needs_one_gets_one() {
    let client = Server::new().client(TaskClient::builder()).await;
    assert_eq!(
        client.call_and_wait("required", json!({})).await.unwrap().text(),
        "as a task"
    );
}

#[tokio::test(start_paused = true)]
async fn each_question_is_asked_once() {
    let user = User::new();
    let client = Server::new().client(asking(&user)).await;
    assert_eq!(client.call_and_wait("ask", json!({})).await.unwrap().text(), "yes yes");
    assert_eq!(user.asked(), ["First?", "Second?"]);
}

/// Tasks, "Task Polling": the same request is there at every poll while the user thinks.
#[tokio::test(start_paused = true)]
async fn a_question_is_not_asked_again_while_the_user_thinks() {
    let user = User::slow();
    let client = Server::new().client(asking(&user)).await;
    let patience = user.patience.clone();
    tokio::spawn(async move {
        for _ in 0..2 {
            tokio::time::sleep(Duration::from_secs(60)).await;
            patience.add_permits(1);
        }
    });
    assert_eq!(client.call_and_wait("ask", json!({})).await.unwrap().text(), "yes yes");
    assert_eq!(user.asked(), ["First?", "Second?"]);
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_question_is_answered() {
    let user = User::new();
    let client = Server::new().client(asking(&user)).await;
    let result = client.call_and_wait("ask_all", json!({})).await.unwrap();
    assert_eq!(result.text(), "true Accept(()) 1");
    let mut asked = user.asked();
    asked.sort();
    assert_eq!(asked, ["7", "Form?", "https://example.com/x", "roots"]);
}

#[tokio::test(start_paused = true)]
async fn a_question_inside_a_call_is_answered_and_the_call_repeated() {
    let user = User::new();
    let client = Server::new().client(asking(&user)).await;
    let answer = client.call("ask_inside", json!({})).await.unwrap();
    assert!(
        matches!(&answer, ToolCall::Immediate(result) if result.text() == "true"),
        "{answer:?}"
    );
    assert_eq!(user.asked(), ["Inside?"]);
}

/// Without a handler nothing is declared, so a server that goes by the protocol asks nothing.
#[tokio::test(start_paused = true)]
async fn a_client_without_a_handler_is_not_asked() {
    let client = Server::new().client(TaskClient::builder()).await;
    let error = client.call_and_wait("ask", json!({})).await.unwrap_err();
    let missing = ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY;
    assert!(
        matches!(&error, ClientError::Failed { error, .. } if error.code == missing),
        "{error:?}"
    );
    assert!(
        error.to_string().contains("TaskClient::builder().input(handler)"),
        "it says what to do: {error}"
    );
    let error = client.call_and_wait("ask_inside", json!({})).await.unwrap_err();
    assert!(matches!(error, ClientError::MissingCapability { .. }), "{error:?}");
    assert!(
        error.to_string().contains("TaskClient::builder().input(handler)"),
        "it says what to do: {error}"
    );
}

/// What a program without a handler finds is a task that asks, and the program answers it if it can.
#[tokio::test(start_paused = true)]
async fn a_task_that_asks_is_handed_to_the_program() {
    let server = Server::new();
    let user = User::new();
    let saved = deferred(&server.client(asking(&user)).await, "ask")
        .await
        .saved()
        .clone();
    let saved = serde_json::to_string(&saved).unwrap();

    let mute = server.client(TaskClient::builder()).await;
    let mut task = mute.resume(serde_json::from_str::<SavedTask>(&saved).unwrap()).unwrap();
    let error = task.wait().await.unwrap_err();
    let ClientError::InputNeeded(needed) = &error else {
        panic!("{error:?}")
    };
    assert_eq!(needed.requests[0].kind(), Some(InputKind::Form));
    assert!(error.to_string().contains("First?"), "{error}");
    assert!(
        error.to_string().contains("TaskClient::builder().input(handler)"),
        "{error}"
    );
    let saved = error.task().unwrap().clone();

    let able = server.client(asking(&user)).await;
    assert_eq!(able.resume(saved).unwrap().wait().await.unwrap().text(), "yes yes");
    assert_eq!(user.asked(), ["First?", "Second?"]);
}

#[tokio::test(start_paused = true)]
async fn a_question_is_answered_by_hand() {
    let server = Server::new();
    let user = User::new();
    let client = server.client(asking(&user)).await;
    let mut task = deferred(&client, "ask").await;
    let key = loop {
        match task.get().await.unwrap().state {
            TaskState::InputRequired { requests, .. } => break requests[0].key().to_owned(),
            _ => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    task.answer("nothing", json!({})).await.unwrap_err();
    let no = json!({"action": "accept", "content": {"confirm": false}});
    task.answer(&key, no).await.unwrap();
    assert_eq!(task.wait().await.unwrap().text(), "no yes");
    assert_eq!(user.asked(), ["Second?"]);
}

#[tokio::test(start_paused = true)]
async fn each_way_to_fail_is_told_apart() {
    let server = Server::new();
    let client = server.client(TaskClient::builder()).await;

    let result = client.call_and_wait("fail", json!({})).await.unwrap();
    assert!(
        result.is_error() && result.text().contains("the disk is full"),
        "{result:?}"
    );

    let error = client.call_and_wait("break_down", json!({})).await.unwrap_err();
    assert!(
        matches!(&error, ClientError::Failed { error, .. } if error.code.0 == -32050 && error.message == "out of order"),
        "{error:?}"
    );

    let error = client.call_and_wait("no_such_tool", json!({})).await.unwrap_err();
    assert!(matches!(error, ClientError::Refused(_)), "{error:?}");

    let error = client.get(&TaskId::new("unknown")).await.unwrap_err();
    assert!(matches!(error, ClientError::UnknownTask(_)), "{error:?}");
    let error = client.cancel(&TaskId::new("unknown")).await.unwrap_err();
    assert!(matches!(error, ClientError::UnknownTask(_)), "{error:?}");

    let mut task = deferred(&client, "for_ever").await;
    task.cancel().await.unwrap();
    let error = task.wait().await.unwrap_err();
    assert!(matches!(error, ClientError::Cancelled { .. }), "{error:?}");

    let error = client.call("plain", json!("text")).await.unwrap_err();
    assert!(matches!(error, ClientError::Protocol { .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_was_past_due_is_expired() {
    let server = Server::new();
    let client = server.client(TaskClient::builder()).await;
    let task = deferred(&client, "for_ever").await;
    assert!(!task.is_past_due());
    let saved = task.saved().clone();
    // Some servers show a task a little longer; ours keeps to the second, and its sweep needs no help.
    tokio::time::sleep(Duration::from_secs(3 * 3600)).await;
    let mut task = client.resume(saved).unwrap();
    assert!(task.is_past_due());
    let error = task.get().await.unwrap_err();
    assert!(matches!(error, ClientError::Expired(_)), "{error:?}");
    let error = task.wait().await.unwrap_err();
    assert!(matches!(error, ClientError::Expired(_)), "{error:?}");
}

/// Dropping a waiter does not cancel; the same handle waits again.
#[tokio::test(start_paused = true)]
async fn a_dropped_wait_leaves_the_task_alone() {
    let server = Server::new();
    let user = User::slow();
    let client = server.client(asking(&user)).await;
    let mut task = deferred(&client, "ask").await;
    tokio::time::timeout(Duration::from_secs(5), task.wait())
        .await
        .unwrap_err();
    assert_eq!(user.asked(), ["First?"]);
    user.patience.add_permits(10);
    assert_eq!(task.wait().await.unwrap().text(), "yes yes");
}

/// A saved task knows its server.
#[tokio::test(start_paused = true)]
async fn a_task_of_another_server_is_refused() {
    let client = Server::new().client(TaskClient::builder()).await;
    let saved = json!({"taskId": "t1", "server": "somebody else"});
    let saved: SavedTask = serde_json::from_value(saved).unwrap();
    let error = client.resume(saved).unwrap_err();
    assert!(matches!(error, ClientError::OtherServer { .. }), "{error:?}");
    client.resume(TaskId::new("t1")).unwrap();
}

/// 2025-11-25: tools run inside the call, and questions come on the connection.
#[tokio::test(start_paused = true)]
async fn a_server_of_2025_is_called_the_same_way() {
    let user = User::new();
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = seen.clone();
    let builder = asking(&user)
        .lifecycle(ClientLifecycleMode::Initialize)
        .observe(move |event| {
            if let TaskEvent::Progress { message, .. } = event {
                log.lock().unwrap().push(message.unwrap_or("-").to_owned());
            }
        });
    let client = Server::new().client(builder).await;
    assert!(!client.has_tasks());
    let info = client.peer().peer_info().unwrap();
    assert_eq!(info.protocol_version, ProtocolVersion::V_2025_11_25);
    assert_eq!(client.call_and_wait("ask", json!({})).await.unwrap().text(), "yes yes");
    assert_eq!(user.asked(), ["First?", "Second?"]);
    assert_eq!(
        client.call_and_wait("steps", json!({})).await.unwrap().text(),
        "three steps"
    );
    assert_eq!(*seen.lock().unwrap(), ["step 1", "step 2", "step 3"]);
    let error = client.call_and_wait("required", json!({})).await.unwrap_err();
    assert!(
        matches!(&error, ClientError::MissingCapability { required, .. } if required["extensions"].is_object()),
        "{error:?}"
    );
}

/// A connection of the application's own will do.
#[tokio::test(start_paused = true)]
async fn a_connection_of_the_applications_is_used() {
    let server = Server::new();
    let service = rmcp::service::serve_client_with_lifecycle(
        (),
        server.stream(),
        ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    )
    .await
    .unwrap();
    let user = User::new();
    let pacing = Pacing::default().default_poll_interval(Duration::from_millis(200));
    let client = asking(&user).pacing(pacing).over(service.peer().clone());
    assert_eq!(client.call_and_wait("ask", json!({})).await.unwrap().text(), "yes yes");
    let error = client.call_and_wait("break_down", json!({})).await.unwrap_err();
    assert!(matches!(error, ClientError::Failed { .. }), "{error:?}");
    let answer = client.call("ask_inside", json!({})).await.unwrap();
    assert!(
        matches!(&answer, ToolCall::Immediate(result) if result.text() == "true"),
        "{answer:?}"
    );
}
