//! The routing headers of `tasks/*`.

use serde_json::json;

use crate::protocol::harness::{Request, Wire};

/// Tasks, "Streamable HTTP: Routing Headers"; 2026-07-28, "Server Validation": `-32020` and HTTP 400 unless `Mcp-Name`
/// is the id, in words that name the header and the method.
#[tokio::test]
async fn mcp_name_of_a_tasks_request_is_its_task_id_or_the_request_is_refused() {
    let wire = Wire::http().await;
    let id = wire.create("ask", json!({})).await;
    let before = wire.settled(&id).await;
    let other_case: String = id
        .chars()
        .map(|c| {
            if c.is_ascii_lowercase() {
                c.to_ascii_uppercase()
            } else {
                c.to_ascii_lowercase()
            }
        })
        .collect();
    for request in [
        Request::get(&id),
        Request::update(&id, json!({"go": {"action": "decline"}})),
        Request::cancel(&id),
    ] {
        let absent = wire.ask(&request.clone().header_name(None)).await;
        absent.refused(-32020, 400);
        for name in ["Mcp-Name", request.method.as_str()] {
            assert!(absent.error_words().contains(name), "{name}: {}", absent.error_words());
        }
        for wrong in ["ask", &other_case, "", "x"] {
            wire.ask(&request.clone().header_name(Some(wrong)))
                .await
                .refused(-32020, 400);
        }
    }
    assert_eq!(wire.task(&id).await, before, "nothing was touched");
    wire.ask(&Request::get(&id).header_name(Some(&id)))
        .await
        .has_status(200);
}

/// 2026-07-28, "Value Encoding": a name may come in the Base64 form.
#[tokio::test]
async fn mcp_name_may_be_encoded() {
    let wire = Wire::http().await;
    let id = wire.create("unlimited", json!({})).await;
    let encoded = format!("=?base64?{}?=", base64(id.as_bytes()));
    let reply = wire.ask(&Request::get(&id).header_name(Some(&encoded))).await;
    assert_eq!(reply.result()["taskId"], id);
}

/// 2026-07-28, "Standard Request Headers": so it is for the tool's name.
#[tokio::test]
async fn mcp_name_of_a_call_is_the_tool_or_the_call_is_refused() {
    let wire = Wire::http().await;
    let call = Request::call("optional", json!({"text": "a", "times": 1}));
    for name in [None, Some("plain"), Some("OPTIONAL")] {
        wire.ask(&call.clone().header_name(name)).await.refused(-32020, 400);
    }
    assert_eq!(wire.seen().await.minted, 0);
}

/// Clients that never send the header on `tasks/*` are let in by a setting, which fills it in from the body; a wrong one
/// is refused all the same, and so is a call without it.
#[tokio::test]
async fn an_absent_mcp_name_of_a_tasks_request_is_filled_in_where_a_setting_says_so() {
    let wire = Wire::http_with(&[("MCP_TASKS_HTTP_REQUIRE_NAME", "false")]).await;
    let id = wire.create("ask", json!({})).await;
    wire.settled(&id).await;
    let requests = [
        Request::get(&id),
        Request::update(&id, json!({"go": {"action": "decline"}})),
        Request::cancel(&id),
    ];
    for request in &requests {
        for wrong in ["ask", "", "x"] {
            wire.ask(&request.clone().header_name(Some(wrong)))
                .await
                .refused(-32020, 400);
        }
    }
    let [get, update, cancel] = requests.map(|request| request.header_name(None));
    assert_eq!(wire.ask(&get).await.result()["status"], "input_required");
    wire.ask(&update).await.is_ack();
    wire.reaches(&id, "completed").await;
    wire.ask(&cancel).await.is_ack();
    for id in ["unknown", "gr\u{fc}n", "a\nb"] {
        let reply = wire.ask(&Request::get(id).header_name(None)).await;
        assert!(matches!(reply.code(), -32602 | -32020), "{reply:?}");
    }
    let malformed = Request::new("tasks/get", json!({"taskId": 7})).header_name(None);
    assert_eq!(wire.ask(&malformed).await.code(), -32602);
    let call = Request::call("plain", json!({"text": "a", "times": 1})).header_name(None);
    wire.ask(&call).await.refused(-32020, 400);
}

/// The routing headers are HTTP's: on stdio the body is enough.
#[tokio::test]
async fn stdio_needs_no_headers() {
    let wire = Wire::stdio();
    let id = wire.create("unlimited", json!({})).await;
    assert_eq!(wire.settled(&id).await["taskId"], id);
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let sextet = (bits >> (18 - 6 * place)) & 63;
            text.push(if place <= chunk.len() {
                char::from(ALPHABET[sextet as usize])
            } else {
                '='
            });
        }
    }
    text
}
