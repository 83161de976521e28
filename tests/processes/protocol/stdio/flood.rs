//! What a client may have open on one connection, and what it may leave unread.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::ChildStdin;
use tokio::task::JoinHandle;

use crate::protocol::harness::{Fixture, Request, Wire, until, within};

/// How many subscriptions may be open, and how long their requests may be together, in bytes.
const MOST: usize = 1000;
const MOST_BYTES: usize = 4 * 1024 * 1024;

fn listen(wire: &Wire, id: &Value, tasks: &[&str]) -> String {
    wire.body(&Request::listen(id.clone(), tasks)).to_string()
}

/// A task that does not end, so that its subscriptions do not either.
async fn endless(wire: &Wire) -> String {
    wire.create("wait", json!({"gate": "shut"})).await
}

/// What the first message about a subscription is: `None` for the acknowledgement, the words of a refusal otherwise.
async fn outcome(wire: &Wire, id: &Value) -> Option<String> {
    until("an answer", async || {
        wire.received().iter().find_map(|message| {
            let is_acknowledged = message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == *id;
            if is_acknowledged {
                return Some(None);
            }
            (message["id"] == *id).then(|| {
                assert_eq!(message["error"]["code"], -32600, "{message}");
                Some(message["error"]["message"].as_str().unwrap().to_owned())
            })
        })
    })
    .await
}

async fn cancel(wire: &Wire, id: &Value) {
    wire.notify("notifications/cancelled", json!({"requestId": id})).await;
}

/// Asks again, each time under a new id, until a subscription is open.
async fn open_at_last(wire: &Wire, tasks: &[&str]) {
    let mut tries = 0;
    until("a subscription is open", async || {
        tries += 1;
        let id = json!(format!("try {tries}"));
        wire.write_line(&listen(wire, &id, tasks)).await;
        outcome(wire, &id).await.is_none().then_some(())
    })
    .await;
}

/// 2026-07-28, "Subscriptions": a client may have many, not any number of them, and is told so.
#[tokio::test]
async fn too_many_subscriptions_are_refused_until_one_is_cancelled() {
    let wire = Wire::stdio();
    let task = endless(&wire).await;
    for id in 0..MOST {
        wire.write_line(&listen(&wire, &json!(id), &[&task])).await;
    }
    for id in ["one", "two"] {
        wire.write_line(&listen(&wire, &json!(id), &[&task])).await;
        let words = outcome(&wire, &json!(id)).await.unwrap();
        assert!(words.contains("1000") && words.contains("cancel"), "{words}");
    }
    for id in [0, 7, MOST - 1] {
        assert_eq!(outcome(&wire, &json!(id)).await, None);
    }
    cancel(&wire, &json!(7)).await;
    open_at_last(&wire, &[&task]).await;
}

/// Nor may their requests be of any length together.
#[tokio::test]
async fn long_subscriptions_are_refused_until_one_is_cancelled() {
    let wire = Wire::stdio();
    let task = endless(&wire).await;
    let long = "x".repeat(MOST_BYTES / 2);
    let (first, second) = (json!("first"), json!("second"));
    wire.write_line(&listen(&wire, &first, &[&task, &long])).await;
    assert_eq!(outcome(&wire, &first).await, None);
    wire.write_line(&listen(&wire, &second, &[&task, &long])).await;
    let words = outcome(&wire, &second).await.unwrap();
    assert!(words.contains(&MOST_BYTES.to_string()), "{words}");
    // A short one is none too many.
    wire.write_line(&listen(&wire, &json!("short"), &[&task])).await;
    assert_eq!(outcome(&wire, &json!("short")).await, None);
    cancel(&wire, &first).await;
    open_at_last(&wire, &[&task, &long]).await;
}

/// Writes until all is written, or the server seems to read no more. Were that too early, a test would only see less. Returns
/// how much that was.
async fn write_unread(mut stdin: ChildStdin, text: String) -> (JoinHandle<ChildStdin>, usize) {
    const AT_ONCE: usize = 64 * 1024;
    let written = Arc::new(AtomicUsize::new(0));
    let counted = written.clone();
    let writing = tokio::spawn(async move {
        for piece in text.as_bytes().chunks(AT_ONCE) {
            stdin.write_all(piece).await.unwrap();
            counted.fetch_add(piece.len(), Relaxed);
        }
        stdin
    });
    let (mut before, mut still) = (0, 0);
    while !writing.is_finished() && still < 10 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = written.load(Relaxed);
        still = if now == before && now > 0 { still + 1 } else { 0 };
        before = now;
    }
    (writing, before)
}

/// 2026-07-28, "stdio", "Shutdown": a client closes stdin and waits for the server to end, whether it reads or not.
#[tokio::test]
async fn the_end_of_stdin_is_seen_with_answers_that_are_not_read() {
    let wire = Wire::stdio();
    let bad = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","x":"\ud800"}"#;
    let call = Request::call("plain", json!({"text": "a".repeat(200), "times": 2}));
    let call = wire.body(&call.id(json!(1))).to_string();
    for line in [bad, &call] {
        let (fixture, stdin, stdout) = Fixture::stdio(&[]);
        // More answers than the pipe and the server hold, and fewer requests.
        let text = format!("{line}\n").repeat(256 * 1024 / line.len());
        let (writing, _) = write_unread(stdin, text).await;
        drop(within("all is written", writing).await.unwrap());
        fixture.exit().await;
        drop(stdout);
    }
}

/// A client that asks and does not read has to wait: what it is to be told does not fill the memory. Once it reads, all is
/// answered.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn answers_that_are_not_read_fill_no_memory() {
    const SENT: usize = 8 * 1024 * 1024;
    let wire = Wire::stdio();
    let body = |id: usize| wire.body(&Request::listen(json!(id), &["never"]));
    let refused = |id: usize| {
        let mut body = body(id);
        body["params"]["notifications"]["taskIds"] = json!(1);
        body.to_string()
    };
    let of_rmcp = |id: usize| {
        let mut body = body(id);
        body["params"]["notifications"] = json!({});
        body.to_string()
    };
    let call = |id: usize| {
        let arguments = json!({"text": "a", "times": 2});
        wire.body(&Request::call("plain", arguments).id(json!(id))).to_string()
    };
    let undecodable = |id: usize| body(id).to_string().replace("never", r"\ud800");
    let kinds: [(&str, &dyn Fn(usize) -> String); 5] = [
        ("open", &|id| body(id).to_string()),
        ("refused", &refused),
        ("undecodable", &undecodable),
        ("of rmcp", &of_rmcp),
        ("calls", &call),
    ];
    for (kind, line) in kinds {
        let mut text = String::new();
        let mut count = 0;
        while text.len() < SENT {
            text += &line(count);
            text.push('\n');
            count += 1;
        }
        let (fixture, stdin, stdout) = Fixture::stdio(&[]);
        let (writing, written) = write_unread(stdin, text).await;
        let most = fixture.peak_memory();
        assert!(most < 8 * SENT as u64, "{kind}: {most} bytes, {written} written");
        let mut lines = BufReader::new(stdout).lines();
        let mut answered = 0;
        while answered < count {
            let line = within("an answer", lines.next_line()).await.unwrap().unwrap();
            // Each has one response, as a subscription to no task is over at once.
            let message: Value = serde_json::from_str(&line).unwrap();
            answered += usize::from(message.get("id").is_some());
        }
        drop(within("all is written", writing).await.unwrap());
    }
}
