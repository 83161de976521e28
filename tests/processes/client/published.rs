//! Servers, and a client, that are not ours: FastMCP with its Tasks extension, and rmcp's own `TaskManager`.

mod fastmcp_client;
mod fastmcp_server;
mod python;
mod rmcp_server;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_tasks::client::{
    ClientError, FormRequest, InputError, InputHandler, Pacing, SavedTask, TaskClient, TaskClientBuilder, TaskEvent,
    TaskHandle, ToolCall,
};
use mcp_tasks::context::InputKind;
use mcp_tasks::{Elicited, TaskId};
use serde_json::{Map, Value, json};

use crate::client::harness::{User, until, within};

/// Looks that come soon after each other, whatever the server suggests: these are our servers, and can take it.
fn impatient() -> TaskClientBuilder {
    let pacing = Pacing::default().bounds(Duration::from_millis(10), Duration::from_millis(50));
    TaskClient::builder().pacing(pacing)
}

async fn connected(builder: TaskClientBuilder, url: &str) -> TaskClient {
    within("the connection", builder.connect_http(url)).await.unwrap()
}

async fn started(client: &TaskClient, tool: &str, arguments: Value) -> TaskHandle {
    match within("the task", client.call(tool, arguments)).await.unwrap() {
        ToolCall::Deferred(task) => task,
        other => panic!("{tool} is no task: {other:?}"),
    }
}

async fn result(client: &TaskClient, tool: &str, arguments: Value) -> Result<String, ClientError> {
    let result = within("the result", client.call_and_wait(tool, arguments)).await?;
    assert!(!result.is_error(), "{result:?}");
    Ok(result.text())
}

/// Says no to everything.
struct Unwilling;

impl InputHandler for Unwilling {
    fn kinds(&self) -> Vec<InputKind> {
        vec![InputKind::Form]
    }

    async fn form(&self, _: FormRequest) -> Result<Elicited<Map<String, Value>>, InputError> {
        Ok(Elicited::Decline)
    }
}

/// A task's status messages are heard while it works; a wait that is dropped leaves it working, and cancelling ends it.
async fn tells_how_far_it_is_until_it_is_cancelled(url: &str, arguments: Value, words: &str) {
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = heard.clone();
    let builder = impatient().observe(move |event| {
        if let TaskEvent::Status(task) = event {
            log.lock().unwrap().extend(task.status_message.clone());
        }
    });
    let client = connected(builder, url).await;
    let mut task = started(&client, "deferred", arguments).await;
    let told = until(words, async || {
        let heard = heard.lock().unwrap();
        heard.iter().any(|message| message.contains(words)).then_some(())
    });
    tokio::select! {
        () = told => {}
        ended = task.wait() => panic!("the task has ended: {ended:?}"),
    }
    assert_eq!(task.get().await.unwrap().state.status(), "working");
    task.cancel().await.unwrap();
    let error = within("the end", task.wait()).await.unwrap_err();
    assert!(matches!(error, ClientError::Cancelled { .. }), "{error:?}");
    // What has ended is acknowledged like anything else, and stays as it is.
    task.cancel().await.unwrap();
    assert_eq!(task.get().await.unwrap().state.status(), "cancelled");
}

/// Without an answer the wait ends with the task in hand. From what was kept of it another client goes on, and asks.
async fn is_resumed_where_it_asks(url: &str, questions: &[&str]) -> String {
    // A server may refuse a task that asks to a client that cannot be asked.
    struct Absent;
    impl InputHandler for Absent {
        fn kinds(&self) -> Vec<InputKind> {
            vec![InputKind::Form]
        }
        async fn form(&self, _: FormRequest) -> Result<Elicited<Map<String, Value>>, InputError> {
            Err(InputError::later("nobody is here"))
        }
    }
    let client = connected(impatient().input(Absent), url).await;
    let mut task = started(&client, "question", json!({})).await;
    let error = within("the question", task.wait()).await.unwrap_err();
    assert!(matches!(error, ClientError::InputNeeded(_)), "{error:?}");
    let kept = serde_json::to_string(error.task().unwrap()).unwrap();
    client.close().await;

    let user = User::new();
    let client = connected(impatient().input(user.clone()), url).await;
    let saved: SavedTask = serde_json::from_str(&kept).unwrap();
    let result = within("the result", client.resume(saved).unwrap().wait())
        .await
        .unwrap();
    let mut asked = user.asked();
    asked.sort();
    assert_eq!(asked, questions, "each is asked once");
    result.text()
}

/// A task that asks can be called off.
async fn is_cancelled_where_it_asks(url: &str) {
    let user = User::slow();
    let client = connected(impatient().input(user.clone()), url).await;
    let mut task = started(&client, "question", json!({})).await;
    let canceller = client.clone();
    let id = task.id();
    let cancelling = async {
        until("the question", async || (!user.asked().is_empty()).then_some(())).await;
        canceller.cancel(&id).await.unwrap();
    };
    let (error, ()) = within("the end", async { tokio::join!(task.wait(), cancelling) }).await;
    let error = error.unwrap_err();
    assert!(matches!(error, ClientError::Cancelled { .. }), "{error:?}");
}

/// What no server has is unknown, and a task that was kept with it is not waited for.
async fn does_not_know_what_it_does_not_know(client: &TaskClient) {
    let id = TaskId::new("786512e2-9e0d-44bd-8f29-789f320fe840");
    let error = within("an answer", client.get(&id)).await.unwrap_err();
    assert!(matches!(error, ClientError::UnknownTask(_)), "{error:?}");
    let error = within("an answer", client.cancel(&id)).await.unwrap_err();
    assert!(matches!(error, ClientError::UnknownTask(_)), "{error:?}");
    within("an answer", client.update(&id, Map::new())).await.unwrap_err();
    let error = within("an answer", client.resume(id).unwrap().wait())
        .await
        .unwrap_err();
    assert!(matches!(error, ClientError::UnknownTask(_)), "{error:?}");
}
