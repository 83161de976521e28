//! Our client and a server on rmcp's own `TaskManager`.

use std::process::Stdio;

use mcp_tasks::client::{ClientError, ToolCall};
use rmcp::service::ClientLifecycleMode;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::{Unwilling, connected, impatient, result, started};
use crate::client::harness::{User, within};

struct RmcpServer {
    url: String,
    _child: Child,
}

impl RmcpServer {
    async fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rmcp-server"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = within("the URL", lines.next_line()).await.unwrap();
        Self {
            url: url.expect("the server starts"),
            _child: child,
        }
    }
}

#[tokio::test]
async fn results_come_at_once_or_as_tasks() {
    let server = RmcpServer::start().await;
    let client = connected(impatient(), &server.url).await;
    assert!(client.has_tasks());
    assert_eq!(client.tools().await.unwrap().len(), 6);
    let call = client.call("immediate", json!({})).await.unwrap();
    assert!(
        matches!(&call, ToolCall::Immediate(result) if result.text() == "done"),
        "{call:?}"
    );
    let mut task = started(&client, "deferred", json!({"steps": 3, "step_ms": 1})).await;
    assert_eq!(within("the result", task.wait()).await.unwrap().text(), "done");
    // The result of a task that has ended is there for who asks again.
    assert_eq!(within("the result", task.wait()).await.unwrap().text(), "done");
    super::does_not_know_what_it_does_not_know(&client).await;
}

#[tokio::test]
async fn a_task_tells_how_far_it_is_until_it_is_cancelled() {
    let server = RmcpServer::start().await;
    let hours = json!({"steps": 1_000_000, "step_ms": 10});
    super::tells_how_far_it_is_until_it_is_cancelled(&server.url, hours, "/1000000").await;
}

#[tokio::test]
async fn questions_are_answered() {
    let server = RmcpServer::start().await;
    let user = User::new();
    let client = connected(impatient().input(user.clone()), &server.url).await;
    assert_eq!(result(&client, "question", json!({})).await.unwrap(), "done");
    assert_eq!(user.asked(), ["Go on?"]);
    let client = connected(impatient().input(Unwilling), &server.url).await;
    assert_eq!(result(&client, "question", json!({})).await.unwrap(), "left");
    assert_eq!(super::is_resumed_where_it_asks(&server.url, &["Go on?"]).await, "done");
    super::is_cancelled_where_it_asks(&server.url).await;
}

#[tokio::test]
async fn a_tool_that_fails_has_a_result_and_a_task_that_fails_has_an_error() {
    let server = RmcpServer::start().await;
    let client = connected(impatient(), &server.url).await;
    let failed = within("the result", client.call_and_wait("tool_error", json!({})))
        .await
        .unwrap();
    assert!(failed.is_error());
    assert_eq!(failed.text(), "it did not work");
    let error = result(&client, "failure", json!({})).await.unwrap_err();
    let ClientError::Failed { error, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!((error.code.0, &*error.message), (-32603, "the database is not there"));
    let error = result(&client, "no_such_tool", json!({})).await.unwrap_err();
    assert!(matches!(error, ClientError::Refused(_)), "{error:?}");
}

/// A client of 2025-11-25 cannot declare the extension: tools run inside the call, and one that cannot says so.
#[tokio::test]
async fn a_client_of_2025_calls_the_same_tools() {
    let server = RmcpServer::start().await;
    let old = impatient().lifecycle(ClientLifecycleMode::Initialize);
    let client = connected(old, &server.url).await;
    assert!(!client.has_tasks());
    let call = client
        .call("deferred", json!({"steps": 1, "step_ms": 1}))
        .await
        .unwrap();
    assert!(
        matches!(&call, ToolCall::Immediate(result) if result.text() == "done"),
        "{call:?}"
    );
    let error = client.call("question", json!({})).await.unwrap_err();
    assert!(matches!(error, ClientError::MissingCapability { .. }), "{error:?}");
    let error = client.call("failure", json!({})).await.unwrap_err();
    assert!(matches!(error, ClientError::Refused(_)), "{error:?}");
}
