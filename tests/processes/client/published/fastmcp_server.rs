//! Our client and a server on FastMCP.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

use mcp_tasks::client::{ClientError, TaskClient, ToolCall};
use rmcp::service::ClientLifecycleMode;
use serde_json::json;

use super::python::{python, script};
use super::{Unwilling, connected, impatient, result, started};
use crate::client::harness::{User, within};

struct FastMcp {
    url: String,
    /// The server ends when its standard input does: with this process.
    _child: Child,
}

impl FastMcp {
    fn start() -> Option<Self> {
        let python = python()?;
        let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fastmcp-server.log");
        let mut child = Command::new(python)
            .arg(script("server.py"))
            .env_remove("FASTMCP_DOCKET_URL")
            .env("FASTMCP_LOG_LEVEL", "ERROR")
            .current_dir(env!("CARGO_TARGET_TMPDIR"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .expect("Python can be started");
        let mut url = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut url).unwrap();
        let url = url.trim().to_owned();
        assert!(
            url.starts_with("http://"),
            "FastMCP does not start; see {}",
            log.display()
        );
        Some(Self { url, _child: child })
    }
}

/// One server for all of these tests: it takes seconds to start.
static SERVER: LazyLock<Option<FastMcp>> = LazyLock::new(FastMcp::start);

/// The server's URL; nothing where there is no FastMCP.
fn server() -> Option<&'static str> {
    SERVER.as_ref().map(|server| server.url.as_str())
}

#[tokio::test]
async fn results_come_at_once_or_as_tasks() {
    let Some(url) = server() else { return };
    let client = connected(impatient(), url).await;
    assert!(client.has_tasks());
    assert_eq!(client.server_name().as_deref(), Some("fastmcp-fixture"));
    let tools = client.tools().await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == "deferred"));
    let call = client.call("immediate", json!({"name": "Ada"})).await.unwrap();
    assert!(
        matches!(&call, ToolCall::Immediate(result) if result.text() == "Hello, Ada!"),
        "{call:?}"
    );
    let mut task = started(&client, "optional", json!({"name": "Ada"})).await;
    assert_eq!(within("the result", task.wait()).await.unwrap().text(), "Hello, Ada!");
    let ended = within("the result", task.wait()).await.unwrap();
    assert_eq!(ended.text(), "Hello, Ada!");
    assert_eq!(ended.structured(), Some(&json!({"result": "Hello, Ada!"})));
    let done = result(&client, "deferred", json!({"steps": 2})).await.unwrap();
    assert_eq!(done, "did 2 steps");
    // At the pace that the server suggests, with a first look before it.
    let patient = connected(TaskClient::builder(), url).await;
    assert_eq!(
        result(&patient, "optional", json!({"name": "Bob"})).await.unwrap(),
        "Hello, Bob!"
    );
    super::does_not_know_what_it_does_not_know(&client).await;
}

#[tokio::test]
async fn a_task_tells_how_far_it_is_until_it_is_cancelled() {
    let Some(url) = server() else { return };
    super::tells_how_far_it_is_until_it_is_cancelled(url, json!({"steps": 1_000_000}), "step ").await;
}

#[tokio::test]
async fn questions_are_answered() {
    let Some(url) = server() else { return };
    let user = User::new();
    let client = connected(impatient().input(user.clone()), url).await;
    let answered = result(&client, "question", json!({})).await.unwrap();
    assert_eq!(answered, "the words are word and word");
    let mut asked = user.asked();
    asked.sort();
    assert_eq!(asked, ["The first word?", "The second word?"]);
    let client = connected(impatient().input(Unwilling), url).await;
    let declined = result(&client, "question", json!({})).await.unwrap();
    assert_eq!(declined, "the words are decline and decline");
}

/// The same question in the same words is another one when it is asked again.
#[tokio::test]
async fn a_question_that_is_asked_again_is_answered_again() {
    let Some(url) = server() else { return };
    let user = User::new();
    let client = connected(impatient().input(user.clone()), url).await;
    assert_eq!(result(&client, "again", json!({})).await.unwrap(), "the word is word");
    assert_eq!(user.asked(), ["Which word?", "Which word?"]);
}

#[tokio::test]
async fn a_task_that_asks_is_resumed_or_cancelled() {
    let Some(url) = server() else { return };
    let questions = ["The first word?", "The second word?"];
    assert_eq!(
        super::is_resumed_where_it_asks(url, &questions).await,
        "the words are word and word"
    );
    super::is_cancelled_where_it_asks(url).await;
}

#[tokio::test]
async fn a_tool_that_fails_has_a_result_and_a_task_that_fails_has_an_error() {
    let Some(url) = server() else { return };
    let client = connected(impatient(), url).await;
    let failed = within("the result", client.call_and_wait("tool_error", json!({})))
        .await
        .unwrap();
    assert!(failed.is_error());
    assert_eq!(failed.text(), "the disk is on fire");
    let error = result(&client, "failure", json!({})).await.unwrap_err();
    let ClientError::Failed { error, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!((error.code.0, &*error.message), (-32050, "no such disk"));
    assert_eq!(error.data, Some(json!({"floor": 3})));
}

/// A client of 2025-11-25 cannot declare the extension.
#[tokio::test]
async fn a_client_of_2025_calls_the_same_tools() {
    let Some(url) = server() else { return };
    let old = impatient().lifecycle(ClientLifecycleMode::Initialize);
    let client = connected(old, url).await;
    assert!(!client.has_tasks());
    let call = client.call("optional", json!({"name": "Ada"})).await.unwrap();
    assert!(
        matches!(&call, ToolCall::Immediate(result) if result.text() == "Hello, Ada!"),
        "{call:?}"
    );
    let error = client.call("deferred", json!({})).await.unwrap_err();
    assert!(matches!(error, ClientError::MissingCapability { .. }), "{error:?}");
}

#[tokio::test]
async fn tasks_are_seen_through_on_standard_streams() {
    let Some(python) = python() else { return };
    let mut command = tokio::process::Command::new(python);
    command
        .arg(script("server.py"))
        .arg("stdio")
        .env_remove("FASTMCP_DOCKET_URL")
        .env("FASTMCP_LOG_LEVEL", "ERROR")
        .current_dir(env!("CARGO_TARGET_TMPDIR"));
    let user = User::new();
    let builder = impatient().input(user.clone());
    let client = within("the connection", builder.connect_command(command))
        .await
        .unwrap();
    assert!(client.has_tasks());
    let done = result(&client, "deferred", json!({"steps": 1})).await.unwrap();
    assert_eq!(done, "did 1 steps");
    let answered = result(&client, "question", json!({})).await.unwrap();
    assert_eq!(answered, "the words are word and word");
    assert_eq!(user.asked().len(), 2);
    let mut task = started(&client, "slow", json!({})).await;
    task.cancel().await.unwrap();
    let error = within("the end", task.wait()).await.unwrap_err();
    assert!(matches!(error, ClientError::Cancelled { .. }), "{error:?}");
    within("the server ends", client.close()).await;
}
