//! What a client may write to stdin.

use serde_json::{Value, json};

use crate::protocol::harness::{Request, Wire, undeclared, until};

mod flood;
mod undecodable;

/// What is said before the first request by clients that have a past: what they no longer wait for, answers that come late,
/// and lines that are no messages.
const EARLY: [&str; 10] = [
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/of_mine","params":{}}"#,
    r#"{"jsonrpc":"2.0","method":"of_mine"}"#,
    r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"gone"}}"#,
    "{",
    "7",
    "",
    r#"{"jsonrpc":"2.0","id":"bad","method":"tools/call","params":{"name":"a\ud800b"}}"#,
];

/// 2026-07-28, "stdio", and 2025-11-25, "Lifecycle": what is no request needs no answer, and does not end a conversation
/// that has not begun.
#[tokio::test]
async fn what_comes_before_the_first_request_does_not_end_the_server() {
    let mut session = Wire::stdio();
    let stateless = Wire::stdio();
    for wire in [&session, &stateless] {
        for line in EARLY {
            wire.write_line(line).await;
        }
    }
    let call = Request::call("plain", json!({"text": "a", "times": 2}));
    assert_eq!(stateless.ask(&call).await.words(), "aa");
    session.initialize("2025-11-25").await;
    assert_eq!(session.ask(&call).await.words(), "aa");
}

/// Nor after requests that open no conversation: those that rmcp answers by themselves.
#[tokio::test]
async fn requests_that_open_no_conversation_are_answered_and_what_follows_them_is_passed_over() {
    let wire = Wire::stdio();
    let discover = wire.body(&Request::new("server/discover", json!({})).id(json!("d")));
    let ping = json!({"jsonrpc": "2.0", "id": "p", "method": "ping"});
    let bare = json!({"jsonrpc": "2.0", "id": "b", "method": "tools/list"});
    let mut of_no_revision = wire.body(&Request::new("tools/list", json!({})).id(json!("r")));
    of_no_revision["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2031-01-01");
    for request in [&discover, &ping, &bare, &of_no_revision] {
        wire.write_line(&request.to_string()).await;
        for line in EARLY {
            wire.write_line(line).await;
        }
    }
    wire.seen().await;
    let received = wire.received();
    let answer = |id: &str| received.iter().find(|message| message["id"] == id).unwrap();
    assert!(answer("d")["result"]["supportedVersions"].is_array(), "{received:?}");
    assert_eq!(answer("p")["result"], json!({}));
    assert_eq!(answer("b")["error"]["code"], -32602);
    assert_eq!(answer("r")["error"]["code"], -32022);
}

/// Once the conversation is open, notifications are what they were: this one ends a call.
#[tokio::test]
async fn a_cancellation_after_the_first_request_is_heard() {
    let wire = Wire::stdio();
    // The very first request opens it.
    let call = Request::call("wait", json!({"gate": "shut"}))
        .capabilities(undeclared())
        .id(json!("first"));
    wire.start(&call).await;
    wire.noted("wait started").await;
    wire.notify("notifications/cancelled", json!({"requestId": "first"}))
        .await;
    wire.noted("wait dropped").await;
}

/// RFC 8259, section 7: a slash may be escaped, as some encoders do with every one.
#[tokio::test]
async fn a_subscription_with_escaped_slashes_is_served_and_cancelled() {
    let wire = Wire::stdio();
    let escaped = |message: Value| message.to_string().replace('/', r"\/");
    let id = wire.create("wait", json!({"gate": "shut"})).await;
    let listen = wire.body(&Request::listen(json!("sub"), &[&id]));
    wire.write_line(&escaped(listen.clone())).await;
    until("the task is told of", async || {
        let received = wire.received();
        let told = received
            .iter()
            .find(|message| message["method"] == "notifications/tasks")?;
        assert_eq!(told["params"]["taskId"], *id);
        Some(())
    })
    .await;
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "sub"}});
    wire.write_line(&escaped(cancelled)).await;
    // The id is free again once the subscription is gone.
    until("the subscription is gone", async || {
        let before = wire.received().len();
        wire.write_line(&escaped(listen.clone())).await;
        let acknowledged = until("an answer", async || {
            let message = wire.received().get(before).cloned()?;
            Some(message.get("error").is_none())
        });
        acknowledged.await.then_some(())
    })
    .await;
}

/// As long as a body over HTTP may be, in bytes.
const LONGEST: usize = 4 * 1024 * 1024;

fn padded(length: usize, message: &Value) -> String {
    let text = message.to_string();
    // Blanks between tokens are no part of the message.
    let blanks = " ".repeat(length - text.len());
    format!("{{{blanks}{}", &text[1..])
}

/// 2026-07-28, "Error Responses": a request that is longer than a body over HTTP may be is refused, by its id, and the
/// conversation goes on. What needs no answer gets none, and where no id can be seen the error has none.
#[tokio::test]
async fn a_line_that_is_too_long_is_answered_and_the_next_one_is_read() {
    let wire = Wire::stdio();
    let request = |id: Value| wire.body(&Request::call("plain", json!({"text": "a", "times": 2})).id(id));
    // Too long from the very first line on.
    for id in [json!(31), json!("x\"y")] {
        wire.write_line(&padded(LONGEST, &request(id.clone()))).await;
        let refused = until("an answer", async || {
            let received = wire.received();
            received.into_iter().find(|message| message["id"] == id)
        })
        .await;
        assert_eq!(refused["jsonrpc"], "2.0");
        assert_eq!(refused["error"]["code"], -32600, "{refused}");
        let words = refused["error"]["message"].as_str().unwrap();
        assert!(words.contains(&LONGEST.to_string()), "{words}");
        wire.seen().await;
    }
    let listen = wire.body(&Request::listen(json!("sub"), &["never"]));
    wire.write_line(&padded(5 * LONGEST, &listen)).await;
    let unanswered = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    wire.write_line(&padded(2 * LONGEST, &unanswered)).await;
    wire.write_line(&"x".repeat(LONGEST)).await;
    wire.seen().await;
    let refused = |message: &&Value| message["error"]["code"] == -32600;
    let ids: Vec<_> = wire
        .received()
        .iter()
        .filter(refused)
        .map(|m| m.get("id").cloned())
        .collect();
    assert_eq!(ids, [Some(json!(31)), Some(json!("x\"y")), Some(json!("sub")), None]);
}

/// One that just fits is served.
#[tokio::test]
async fn a_line_of_four_mebibytes_is_read() {
    let wire = Wire::stdio();
    let request = wire.body(&Request::call("plain", json!({"text": "a", "times": 2})).id(json!("fits")));
    wire.write_line(&padded(LONGEST - "\n".len(), &request)).await;
    let answer = until("an answer", async || {
        wire.received().into_iter().find(|message| message["id"] == "fits")
    })
    .await;
    assert_eq!(answer["result"]["content"][0]["text"], "aa");
}

/// A line that never ends fills no memory.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_line_without_end_fills_no_memory() {
    let wire = Wire::stdio();
    wire.seen().await;
    let line = padded(64 * LONGEST, &wire.body(&Request::get("x").id(json!("long"))));
    wire.write_line(&line).await;
    let refused = until("an answer", async || {
        wire.received().into_iter().find(|message| message["id"] == "long")
    })
    .await;
    assert_eq!(refused["error"]["code"], -32600);
    let most = wire.fixture.peak_memory();
    assert!(most < 16 * LONGEST as u64, "{most} bytes");
}
