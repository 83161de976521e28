//! Servers of older revisions, and ones that start slowly.

use std::time::Duration;

use mcp_tasks::client::{TaskClient, ToolCall};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::client::harness::User;

/// A server that writes, for each line it reads, what it is told to write.
async fn client_of(
    builder: mcp_tasks::client::TaskClientBuilder,
    mut act: impl FnMut(&Value) -> Vec<(Duration, Value)> + Send + 'static,
) -> TaskClient {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, mut writer) = tokio::io::split(far);
    tokio::spawn(async move {
        let mut lines = BufReader::new(reader).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message = serde_json::from_str(&line).unwrap();
            for (after, reply) in act(&message) {
                tokio::time::sleep(after).await;
                let _ = writer.write_all(format!("{reply}\n").as_bytes()).await;
            }
        }
    });
    let (reader, writer) = tokio::io::split(near);
    builder.connect_io(reader, writer).await.unwrap()
}

fn reply(message: &Value, result: Value) -> Vec<(Duration, Value)> {
    let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    vec![(Duration::ZERO, reply)]
}

fn initialized(message: &Value) -> Vec<(Duration, Value)> {
    let result = json!({
        "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "old", "version": "1"},
    });
    reply(message, result)
}

/// A server that knows nothing of 2026-07-28 is spoken to as it can, and asks over the connection.
#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_know_the_new_revision_is_initialized() {
    let user = User::new();
    let mut call = Value::Null;
    let client = client_of(TaskClient::builder().input(user.clone()), move |message| {
        match message["method"].as_str() {
            Some("server/discover") => {
                let error = json!({"code": -32601, "message": "no"});
                vec![(Duration::ZERO, json!({"jsonrpc": "2.0", "id": message["id"], "error": error}))]
            }
            Some("initialize") => {
                assert_eq!(message["params"]["protocolVersion"], "2025-11-25");
                // The Tasks extension is declared by requests of 2026-07-28 alone: a server that believed the handshake would
                // make tasks of what follows.
                let capabilities = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}});
                assert_eq!(message["params"]["capabilities"], capabilities);
                initialized(message)
            }
            Some("tools/call") => {
                call = message["id"].clone();
                let params = json!({"message": "Sure?", "requestedSchema": {"type": "object", "properties": {"a": {"type": "boolean"}}}});
                vec![(Duration::ZERO, json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params}))]
            }
            None if message["id"] == "q" => {
                assert_eq!(message["result"], json!({"action": "accept", "content": {"a": true}}));
                let result = json!({"content": [{"type": "text", "text": "sure"}], "odd": 1});
                vec![(Duration::ZERO, json!({"jsonrpc": "2.0", "id": call, "result": result}))]
            }
            _ => vec![],
        }
    })
    .await;
    assert!(!client.has_tasks());
    let answer = client.call("tool", json!({})).await.unwrap();
    let ToolCall::Immediate(result) = answer else {
        panic!("{answer:?}")
    };
    assert_eq!((result.text().as_str(), &result.raw()["odd"]), ("sure", &json!(1)));
    assert_eq!(user.asked(), ["Sure?"]);
}

/// A server whose start takes longer than the first question is waited for is given the old handshake; that it answers the
/// first question after all does no harm.
#[tokio::test(start_paused = true)]
async fn a_late_answer_to_the_first_question_does_no_harm() {
    let mut discover = Value::Null;
    let client = client_of(TaskClient::builder(), move |message| match message["method"].as_str() {
        Some("server/discover") => {
            discover = message["id"].clone();
            vec![]
        }
        Some("initialize") => {
            let late = json!({"jsonrpc": "2.0", "id": discover, "error": {"code": -32601, "message": "no"}});
            let mut replies = vec![(Duration::ZERO, late)];
            replies.extend(initialized(message));
            replies
        }
        Some("tools/call") => reply(message, json!({"content": []})),
        _ => vec![],
    })
    .await;
    client.call("tool", json!({})).await.unwrap();
}
