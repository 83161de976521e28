//! Panics of a body: generic words out, the detail into the log, and the server goes on.

use serde_json::{Value, json};

use crate::protocol::harness::{Reply, Request, Wire};

const WAYS: [(&str, &str); 5] = [
    ("macro", "secret-macro"),
    ("index", "index out of bounds"),
    ("await", "secret-await"),
    ("drop", "secret-drop"),
    ("payload", "no text"),
];

fn tells(text: &str) -> bool {
    ["secret", "index", "payload", "explode", "panic", ".rs"]
        .iter()
        .any(|word| text.contains(word))
}

async fn goes_on(wire: &Wire) {
    let id = wire.create("optional", json!({"text": "a", "times": 3})).await;
    assert_eq!(wire.settled(&id).await["result"]["content"][0]["text"], "aaa");
    let reply = wire
        .ask(&Request::call("optional", json!({"text": "a", "times": 3})).undeclared())
        .await;
    assert_eq!(reply.words(), "aaa");
}

/// Tasks, "Protocol Errors": an internal error is `-32603`; the task fails.
#[tokio::test]
async fn a_panic_fails_the_task_with_generic_words_and_the_server_goes_on() {
    for wire in Wire::both().await {
        for (way, detail) in WAYS {
            let id = wire.create("explode", json!({"way": way})).await;
            let task = wire.settled(&id).await;
            assert_eq!(task["status"], "failed", "{way}");
            assert_eq!(task["error"]["code"], -32603);
            assert_eq!(task["error"]["message"], task["statusMessage"], "{way}");
            let shown = format!("{} {}", task["error"], task["statusMessage"]);
            assert!(!tells(&shown), "{shown}");
            wire.fixture.logged(detail).await;
        }
        goes_on(&wire).await;
    }
}

/// So does a synchronous call.
#[tokio::test]
async fn a_panic_inside_a_call_is_an_internal_error_with_generic_words() {
    for wire in Wire::both().await {
        for (way, detail) in WAYS {
            let call = Request::call("explode", json!({"way": way})).undeclared();
            let reply: Reply = wire.ask(&call).await;
            reply.refused(-32603, 200);
            assert!(!tells(&reply.error().to_string()), "{reply:?}");
            assert_eq!(reply.error().get("data").unwrap_or(&Value::Null), &Value::Null);
            wire.fixture.logged(detail).await;
        }
        goes_on(&wire).await;
    }
}

/// A body that panics while it is dropped does not keep its task from being cancelled.
#[tokio::test]
async fn a_panic_in_the_drop_of_a_cancelled_body_harms_no_other() {
    for wire in Wire::both().await {
        let id = wire.create("explode_when_dropped", json!({})).await;
        wire.noted("armed").await;
        wire.ask(&Request::cancel(&id)).await.is_ack();
        assert_eq!(wire.task(&id).await["status"], "cancelled");
        wire.fixture.logged("secret-drop").await;
        goes_on(&wire).await;
    }
}
