//! Our server in a process of its own, over HTTP and on standard streams, for both revisions.

use std::time::Duration;

use mcp_tasks::TaskId;
use mcp_tasks::client::{ClientError, Pacing, TaskClient, TaskClientBuilder, ToolCall};
use rmcp::service::ClientLifecycleMode;
use serde_json::json;

use crate::client::harness::{Fixture, User, command, within};

fn builder(user: &User) -> TaskClientBuilder {
    let pacing = Pacing::default().bounds(Duration::from_millis(10), Duration::from_millis(50));
    TaskClient::builder().input(user.clone()).pacing(pacing)
}

async fn lives_through_everything(client: &TaskClient, user: &User) {
    assert!(client.has_tasks());
    assert_eq!(client.server_name().as_deref(), Some("fixture"));
    let tools = client.tools().await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == "ask_two"));

    let plain = client.call("plain", json!({"text": "ab", "times": 2})).await.unwrap();
    assert!(
        matches!(&plain, ToolCall::Immediate(result) if result.text() == "abab"),
        "{plain:?}"
    );
    let task = client
        .call_and_wait("required", json!({"text": "ab", "times": 2}))
        .await
        .unwrap();
    assert_eq!(task.text(), "abab");

    let questions = user.asked().len();
    assert_eq!(
        client.call_and_wait("ask_two", json!({})).await.unwrap().text(),
        "yes yes"
    );
    assert_eq!(
        client.call_and_wait("ask_twice", json!({})).await.unwrap().text(),
        "yes yes"
    );
    assert_eq!(
        client.call_and_wait("plain_ask", json!({})).await.unwrap().text(),
        "yes"
    );
    assert_eq!(user.asked().len(), questions + 5);
    assert_eq!(
        client
            .call_and_wait("report", json!({"steps": 3}))
            .await
            .unwrap()
            .text(),
        "3 steps"
    );

    let ToolCall::Deferred(mut sleeping) = client.call("sleep", json!({})).await.unwrap() else {
        panic!("no task")
    };
    tokio::time::timeout(Duration::from_millis(200), sleeping.wait())
        .await
        .unwrap_err();
    assert_eq!(sleeping.get().await.unwrap().state.status(), "working");
    sleeping.cancel().await.unwrap();
    let error = within("the end", sleeping.wait()).await.unwrap_err();
    assert!(matches!(error, ClientError::Cancelled { .. }), "{error:?}");
    let error = client.get(&TaskId::new("unknown")).await.unwrap_err();
    assert!(matches!(error, ClientError::UnknownTask(_)), "{error:?}");
    let denied = client.call_and_wait("guarded_optional", json!({"text": "t"})).await;
    assert!(denied.map_or(true, |result| result.is_error()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_over_http_lives_through_everything() {
    let server = Fixture::http(&[]).await;
    let user = User::new();
    let client = builder(&user).connect_http(server.url()).await.unwrap();
    within("everything", lives_through_everything(&client, &user)).await;
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_on_stdio_lives_through_everything() {
    let user = User::new();
    let command = command(&[("MCP_TASKS_TRANSPORT", "stdio")]);
    let client = builder(&user).connect_command(command).await.unwrap();
    within("everything", lives_through_everything(&client, &user)).await;
    within("the server ends", client.close()).await;
}

/// 2025-11-25, over HTTP and on stdio.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_2025_calls_the_same_tools() {
    let server = Fixture::http(&[]).await;
    let user = User::new();
    let old = || builder(&user).lifecycle(ClientLifecycleMode::Initialize);
    let stdio = command(&[("MCP_TASKS_TRANSPORT", "stdio")]);
    for client in [
        old().connect_http(server.url()).await.unwrap(),
        old().connect_command(stdio).await.unwrap(),
    ] {
        assert!(!client.has_tasks());
        let asked = user.asked().len();
        let result = within("the result", client.call_and_wait("ask_twice", json!({})))
            .await
            .unwrap();
        assert_eq!(result.text(), "yes yes");
        assert_eq!(user.asked().len(), asked + 2);
        let result = client
            .call_and_wait("optional", json!({"text": "a", "times": 2}))
            .await
            .unwrap();
        assert_eq!(result.text(), "aa");
        let error = client
            .call_and_wait("required", json!({"text": "a", "times": 2}))
            .await
            .unwrap_err();
        assert!(matches!(error, ClientError::MissingCapability { .. }), "{error:?}");
        within("the connection closes", client.close()).await;
    }
}

/// A server that is gone for a while is waited for; its tasks are kept in a file.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_is_an_error_with_the_task() {
    let server = Fixture::http(&[]).await;
    let pacing = Pacing::default().retry_timeout(Duration::from_millis(300));
    let client = TaskClient::builder()
        .pacing(pacing)
        .connect_http(server.url())
        .await
        .unwrap();
    let ToolCall::Deferred(mut task) = client.call("sleep", json!({})).await.unwrap() else {
        panic!("no task")
    };
    server.signal("KILL").await;
    let error = within("the end", task.wait()).await.unwrap_err();
    assert!(matches!(error, ClientError::Transport { .. }), "{error:?}");
    assert_eq!(error.task().unwrap().id(), task.id());
}

/// A server that reads its input no more is ended all the same, with what was on its way to it.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_reading_is_ended() {
    // It answers the first request, and then keeps its input open and leaves it alone.
    let answer = json!({
        "jsonrpc": "2.0", "id": 0, "result": {
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0,
            "cacheScope": "private",
        },
    });
    let mut server = tokio::process::Command::new("sh");
    server.args(["-c", "read request; printf '%s\\n' \"$0\"; exec sleep 600"]);
    server.arg(answer.to_string());
    let pacing = Pacing::default().call_timeout(Some(Duration::from_millis(300)));
    let client = TaskClient::builder()
        .pacing(pacing)
        .connect_command(server)
        .await
        .unwrap();
    // More than a pipe holds.
    let error = client
        .call("tool", json!({"text": "x".repeat(1 << 20)}))
        .await
        .unwrap_err();
    assert!(matches!(error, ClientError::Transport { .. }), "{error:?}");
    within("the server ends", client.close()).await;
}
