//! How long the sessions of 2025-11-25 are kept, and how many.

use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::{Value, json};

use crate::protocol::harness::{Reply, Wire, until};

const V2025: &str = "2025-11-25";

/// Sends a request of 2025-11-25, in a session if there is one.
async fn post(wire: &Wire, session: Option<&HeaderValue>, body: Value) -> (Reply, HeaderMap) {
    let mut headers = HeaderMap::new();
    let both = HeaderValue::from_static("application/json, text/event-stream");
    headers.insert("accept", both);
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    if let Some(session) = session {
        headers.insert("mcp-session-id", session.clone());
        headers.insert("mcp-protocol-version", HeaderValue::from_static(V2025));
    }
    wire.post(headers, body.to_string()).await
}

/// Opens a session as a client does that then says nothing more; its id.
async fn opened(wire: &Wire) -> HeaderValue {
    let params = json!({"protocolVersion": V2025, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let (reply, headers) = post(wire, None, body).await;
    assert_eq!(reply.result()["protocolVersion"], V2025);
    headers["mcp-session-id"].clone()
}

/// Calls a tool in a session.
async fn call(wire: &Wire, session: &HeaderValue, tool: &str, arguments: Value) -> Reply {
    let params = json!({"name": tool, "arguments": arguments});
    let body = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    post(wire, Some(session), body).await.0
}

/// Waits until the session is gone. To ask for it would be a sign of life, so the log is read first.
async fn is_gone(wire: &Wire, session: &HeaderValue) {
    let ended = format!("an idle session is ended session={}", session.to_str().unwrap());
    wire.fixture.logged(&ended).await;
    until("the session is gone", async || {
        let status = call(wire, session, "observe", json!({})).await.status;
        (status == Some(404)).then_some(())
    })
    .await;
}

const LOG: (&str, &str) = ("FIXTURE_LOG", "debug");

/// 2025-11-25, "Session Management": a server may end a session at any time, and answers 404 from then on. One whose call is
/// under way is not ended, though nothing is said in it for longer than others are kept.
#[tokio::test]
async fn a_quiet_session_ends_and_one_with_a_call_under_way_does_not() {
    let wire = Wire::http_with(&[LOG, ("MCP_TASKS_HTTP_SESSION_TIMEOUT", "PT1S")]).await;
    let long = opened(&wire).await;
    let outlasted = async {
        wire.noted("wait started").await;
        is_gone(&wire, &opened(&wire).await).await;
        wire.open("g").await;
    };
    let (reply, ()) = tokio::join!(call(&wire, &long, "wait", json!({"gate": "g"})), outlasted);
    assert_eq!(reply.words(), "passed g");
    is_gone(&wire, &long).await;
}

/// A client that sends nothing but `initialize` gets as many sessions as it likes, and does not fill the memory with them: the
/// oldest end. A call under way vouches for its session.
#[tokio::test]
async fn of_too_many_quiet_sessions_the_oldest_end() {
    let wire = Wire::http_with(&[LOG, ("MCP_TASKS_HTTP_MAX_SESSIONS", "2")]).await;
    let oldest = opened(&wire).await;
    let crowded_out = async {
        wire.noted("wait started").await;
        let mut sessions = Vec::new();
        for _ in 0..20 {
            sessions.push(opened(&wire).await);
        }
        let kept = sessions.split_off(18);
        for session in &sessions {
            is_gone(&wire, session).await;
        }
        for session in &kept {
            let reply = call(&wire, session, "plain", json!({"text": "a", "times": 2})).await;
            assert_eq!(reply.words(), "aa");
        }
        wire.open("g").await;
    };
    let (reply, ()) = tokio::join!(call(&wire, &oldest, "wait", json!({"gate": "g"})), crowded_out);
    assert_eq!(reply.words(), "passed g");
}
