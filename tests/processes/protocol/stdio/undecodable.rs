//! Lines that cannot be decoded, or only just.

use serde_json::{Value, json};

use crate::protocol::harness::{Request, Wire, until};

/// A request to call a tool, with this for its argument.
fn calling(id: &Value, text: &str) -> String {
    let call =
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "plain", "arguments": {}}});
    call.to_string()
        .replace(r#""arguments":{}"#, &format!(r#""arguments":{{"text":{text}}}"#))
}

/// JSON-RPC 2.0, section 5.1: what is no JSON is answered with -32700, by its id where one can be seen. No client waits for a
/// response that never comes.
#[tokio::test]
async fn a_request_that_cannot_be_decoded_is_answered_by_its_id() {
    let wire = Wire::stdio();
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let listen = wire.body(&Request::listen(json!("listen"), &["never"])).to_string();
    let lines = [
        (json!("half"), calling(&json!("half"), r#""\ud800""#)),
        (json!("deep"), calling(&json!("deep"), &deep)),
        (json!("huge"), calling(&json!("huge"), "1e999")),
        (
            json!(17),
            r#"{"jsonrpc":"2.0","id":17,"method":"tools/list""#.to_owned(),
        ),
        (
            json!("cut"),
            r#"{"jsonrpc":"2.0","id":"cut","method":"tools/call","params":{"na"#.to_owned(),
        ),
        (json!("listen"), listen.replace(r#""never""#, r#""\udc00""#)),
    ];
    // From the very first line on, and once the conversation is open.
    for round in 0..2 {
        let before = wire.received().len();
        for (_, line) in &lines {
            wire.write_line(line).await;
        }
        wire.write_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":\"raw\",\"method\":\"tools/list\",\"x\":\"\xff\"}\n")
            .await;
        // More digits may have followed.
        wire.write_line(r#"{"jsonrpc":"2.0","method":"tools/list","id":12"#)
            .await;
        wire.seen().await;
        let received = wire.received();
        let refused: Vec<_> = received[before..]
            .iter()
            .filter(|message| message["error"]["code"] == -32700)
            .collect();
        let ids: Vec<_> = refused.iter().map(|message| message.get("id").cloned()).collect();
        let expected = lines.iter().map(|(id, _)| Some(id.clone()));
        let expected: Vec<_> = expected.chain([Some(json!("raw")), None]).collect();
        assert_eq!(ids, expected, "round {round}: {received:?}");
        for message in refused {
            assert_eq!(message["jsonrpc"], "2.0");
            let words = message["error"]["message"].as_str().unwrap();
            assert!(words.starts_with("Parse error: it is not "), "{words}");
        }
    }
}

/// JSON-RPC 2.0, section 5.1: a line that is no JSON is answered with -32700, also where no id can be seen in it.
#[tokio::test]
async fn a_line_that_is_no_json_is_answered() {
    let wire = Wire::stdio();
    let deep = "[".repeat(100_000);
    for line in [
        r#"{"jsonrpc":"2.0","id":7,"meth"#,
        r#"INFO {"jsonrpc":"2.0","id":7,"method":"tools/list"}"#,
        r#"[{"id":7,"method":"tools/list"}"#,
        "{not json",
        "{",
        "}",
        "hello",
        &deep,
    ] {
        let before = wire.received().len();
        wire.write_line(line).await;
        let answer = until("an answer", async || wire.received().get(before).cloned()).await;
        assert_eq!(answer["error"]["code"], -32700, "{line}: {answer}");
        assert!(answer.get("id").is_none(), "{line}: {answer}");
    }
}

/// JSON-RPC 2.0, section 4.1: what looks like a response or a notification gets no answer, so that no two ends send each other
/// errors; nor does a blank line.
#[tokio::test]
async fn a_response_or_notification_that_cannot_be_decoded_gets_no_answer() {
    let wire = Wire::stdio();
    wire.seen().await;
    let before = wire.received().len();
    for line in [
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32700,"message":"\ud800"}}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\ud800"}}"#,
        " ",
        "",
    ] {
        wire.write_line(line).await;
    }
    wire.seen().await;
    let received = wire.received().split_off(before);
    assert!(
        received.iter().all(|message| message.get("error").is_none()),
        "{received:?}"
    );
}

/// What rmcp decodes is still decoded: as deep as it goes, with the marks that some systems write.
#[tokio::test]
async fn a_request_that_is_unusual_is_served() {
    let wire = Wire::stdio();
    let call = wire.body(&Request::call("plain", json!({"text": "a", "times": 2, "x": 1})).id(json!("odd")));
    for inside in [
        format!("{}{}", "[".repeat(100), "]".repeat(100)),
        r#""\ud83d\ude00""#.to_owned(),
        "1e-999".to_owned(),
    ] {
        let before = wire.received().len();
        let line = call.to_string().replace(r#""x":1"#, &format!(r#""x":{inside}"#));
        wire.write_line(&format!("\u{feff}{line}\r")).await;
        until("an answer", async || {
            let answer = wire.received().get(before).cloned()?;
            assert_eq!(answer["id"], "odd");
            // Decoded, whatever the tool says of it.
            assert_ne!(answer["error"]["code"], -32700, "{answer}");
            assert_ne!(answer["error"]["code"], -32600, "{answer}");
            Some(())
        })
        .await;
    }
}

/// The end of stdin ends a line as a line break does.
#[tokio::test]
async fn the_last_line_needs_no_line_break() {
    for is_open in [false, true] {
        for (begin, is_whole) in [("", true), ("x", false)] {
            let wire = Wire::stdio();
            if is_open {
                wire.seen().await;
            }
            let call = wire.body(&Request::call("plain", json!({"text": "a", "times": 2})).id(json!("last")));
            let line = if is_whole {
                call.to_string()
            } else {
                calling(&json!("last"), begin)
            };
            wire.write_bytes(line.as_bytes()).await;
            wire.close_stdin().await;
            let answer = until("an answer", async || {
                wire.received().into_iter().find(|message| message["id"] == "last")
            })
            .await;
            if is_whole {
                assert_eq!(answer["result"]["content"][0]["text"], "aa");
            } else {
                assert_eq!(answer["error"]["code"], -32700, "{answer}");
            }
        }
    }
    let wire = Wire::stdio();
    let listen = wire.body(&Request::listen(json!("sub"), &["never"])).to_string();
    wire.write_bytes(listen.as_bytes()).await;
    wire.close_stdin().await;
    until("the subscription is over", async || {
        let received = wire.received();
        received.iter().find(|message| message["id"] == "sub")?;
        assert_eq!(received[0]["method"], "notifications/subscriptions/acknowledged");
        Some(())
    })
    .await;
}

/// RFC 8259, section 7: every character may be escaped, and a message means what it says decoded.
#[tokio::test]
async fn a_subscription_with_escaped_names_is_about_its_tasks() {
    let wire = Wire::stdio();
    let id = wire.create("wait", json!({"gate": "shut"})).await;
    let listen = |sub: &str| wire.body(&Request::listen(json!(sub), &[&id])).to_string();
    let lines = [
        ("a", listen("a").replace("taskIds", r"task\u0049ds")),
        (
            "b",
            listen("b").replace("subscriptions/listen", r"subscriptions\/l\u0069sten"),
        ),
        ("c", listen("c").replace("\"method\"", "\"m\\u0065thod\"")),
        ("d", format!("\u{feff}{}", listen("d"))),
    ];
    for (sub, line) in lines {
        let before = wire.received().len();
        wire.write_line(&line).await;
        until("the acknowledgement", async || {
            let received = wire.received();
            let acknowledged = received.get(before)?;
            assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
            let params = &acknowledged["params"];
            assert_eq!(params["_meta"]["io.modelcontextprotocol/subscriptionId"], sub);
            assert_eq!(params["notifications"]["taskIds"], json!([id]), "{line}");
            Some(())
        })
        .await;
        // As much is true of what cancels it.
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": sub}});
        wire.write_line(&cancelled.to_string().replace("cancelled", r"c\u0061ncelled"))
            .await;
        wire.seen().await;
    }
}
