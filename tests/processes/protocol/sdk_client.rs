//! The server as rmcp's own client sees it, which decodes strictly: acknowledgements with anything in them, for one, are
//! no acknowledgements to it.

use rmcp::model::*;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RoleClient, RunningService, ServiceError};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use serde_json::{Value, json};

use crate::protocol::harness::{Fixture, command, until, within};

type Client = RunningService<RoleClient, ClientConfig>;

fn config(capabilities: ClientCapabilities) -> ClientConfig {
    ClientConfig::new(capabilities, Implementation::new("sdk", "1"))
}

fn with_tasks() -> ClientCapabilities {
    ClientCapabilities::builder()
        .enable_elicitation()
        .enable_tasks()
        .build()
}

fn discover() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    }
}

async fn over_http(server: &Fixture, capabilities: ClientCapabilities, lifecycle: ClientLifecycleMode) -> Client {
    let transport = StreamableHttpClientTransport::from_uri(server.url());
    let client = config(capabilities).serve_with_lifecycle(transport, lifecycle);
    within("the client starts", client).await.unwrap()
}

async fn on_stdio(capabilities: ClientCapabilities, lifecycle: ClientLifecycleMode) -> Client {
    let command = command(&[("MCP_TASKS_TRANSPORT", "stdio")]);
    let transport = TokioChildProcess::new(command).unwrap();
    let client = config(capabilities).serve_with_lifecycle(transport, lifecycle);
    within("the client starts", client).await.unwrap()
}

fn call(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object")
    };
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

fn text(result: &CallToolResult) -> &str {
    &result.content[0].as_text().unwrap().text
}

async fn settled(client: &Client, id: &str) -> DetailedTask {
    until("the task settles", async || {
        let task = client.get_task(GetTaskParams::new(id)).await.unwrap().task;
        (task.status() != TaskStatus::Working).then_some(task)
    })
    .await
}

async fn lives_through_a_task(client: &Client) {
    let info = client.peer_info().unwrap();
    assert!(info.capabilities.supports_tasks());
    let tools = client.list_all_tools().await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == "ask"));

    let created = client.call_tool_once(call("ask", json!({}))).await.unwrap();
    let CallToolResponse::Task(created) = created else {
        panic!("{created:?}")
    };
    let id = created.task.task_id.as_str();
    let waiting = settled(client, id).await;
    let TaskPayload::InputRequired { input_requests } = waiting.payload else {
        panic!("{waiting:?}")
    };
    assert!(input_requests.contains_key("go"));
    let answers = serde_json::from_value(json!({"go": {"action": "accept", "content": {"confirm": true}}})).unwrap();
    client.update_task(UpdateTaskParams::new(id, answers)).await.unwrap();
    let ended = settled(client, id).await;
    let TaskPayload::Completed { result } = ended.payload else {
        panic!("{ended:?}")
    };
    assert_eq!(result["content"][0]["text"], "yes");
    client.cancel_task(CancelTaskParams::new(id)).await.unwrap();

    let unknown = client.get_task(GetTaskParams::new("unknown")).await.unwrap_err();
    let ServiceError::McpError(error) = unknown else {
        panic!("{unknown:?}")
    };
    assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
}

/// Tasks: a whole life, over HTTP and on stdio.
#[tokio::test]
async fn a_client_with_tasks_lives_through_one() {
    let server = Fixture::http(&[]).await;
    lives_through_a_task(&over_http(&server, with_tasks(), discover()).await).await;
    lives_through_a_task(&on_stdio(with_tasks(), discover()).await).await;
}

async fn lives_without_tasks(client: &Client) {
    let result = client
        .call_tool(call("optional", json!({"text": "ab", "times": 2})))
        .await
        .unwrap();
    assert_eq!(text(&result), "abab");
    let refused = client
        .call_tool(call("required", json!({"text": "a", "times": 1})))
        .await
        .unwrap_err();
    let ServiceError::McpError(error) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(error.code, ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY);
    assert!(error.message.contains("only as a task"), "{}", error.message);
}

/// rmcp, like most clients, is of 2025-11-25 unless told otherwise: task tools run inside the call.
#[tokio::test]
async fn a_client_of_2025_11_25_runs_task_tools_inside_the_call() {
    let server = Fixture::http(&[]).await;
    // It may even say that it knows the extension.
    for capabilities in [ClientCapabilities::default(), with_tasks()] {
        let initialize = || ClientLifecycleMode::Initialize;
        let client = over_http(&server, capabilities.clone(), initialize()).await;
        assert_eq!(
            client.peer_info().unwrap().protocol_version,
            ProtocolVersion::V_2025_11_25
        );
        lives_without_tasks(&client).await;
        lives_without_tasks(&on_stdio(capabilities, initialize()).await).await;
    }
}

/// Tasks, "Capability Negotiation": so do they for a client of 2026-07-28 that does not declare the extension.
#[tokio::test]
async fn a_client_of_2026_07_28_without_the_extension_runs_task_tools_inside_the_call() {
    let server = Fixture::http(&[]).await;
    let capabilities = ClientCapabilities::default();
    lives_without_tasks(&over_http(&server, capabilities.clone(), discover()).await).await;
    lives_without_tasks(&on_stdio(capabilities, discover()).await).await;
}

/// A client that finds out what the server speaks finds 2026-07-28.
#[tokio::test]
async fn a_client_that_probes_finds_the_newest_revision() {
    let server = Fixture::http(&[]).await;
    let lifecycle = || ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: None,
    };
    for client in [
        over_http(&server, with_tasks(), lifecycle()).await,
        on_stdio(with_tasks(), lifecycle()).await,
    ] {
        assert_eq!(
            client.peer_info().unwrap().protocol_version,
            ProtocolVersion::V_2026_07_28
        );
        let created = client.call_tool_once(call("sleep", json!({}))).await.unwrap();
        assert!(matches!(created, CallToolResponse::Task(_)), "{created:?}");
    }
}
