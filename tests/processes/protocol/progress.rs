//! Progress on the synchronous path, and as a task's status message.

use serde_json::{Value, json};

use crate::protocol::harness::{Reply, Request, Wire};

#[track_caller]
fn is_progress(reply: &Reply, token: &Value, steps: u32) {
    let mut last = 0.0;
    assert!(!reply.notifications.is_empty(), "{reply:?}");
    for notification in &reply.notifications {
        assert_eq!(notification["method"], "notifications/progress");
        let params = &notification["params"];
        assert_eq!(&params["progressToken"], token);
        let progress = params["progress"].as_f64().unwrap();
        assert!(progress > last, "{progress} after {last}");
        last = progress;
        assert_eq!(params["total"].as_f64(), Some(f64::from(steps)));
        assert_eq!(params["message"], format!("step {progress}"));
    }
    assert_eq!(last, f64::from(steps), "what was reported last is not lost");
    assert_eq!(reply.words(), format!("{steps} steps"));
}

/// 2026-07-28, "Progress": strictly increasing, with the token as it was sent, and nothing after the response.
#[tokio::test]
async fn progress_of_a_call_increases_carries_the_token_and_ends_before_the_response() {
    for wire in Wire::both().await {
        for token in [json!("a-token"), json!(0), json!(17)] {
            let call = Request::call("report", json!({"steps": 20}))
                .undeclared()
                .meta("progressToken", token.clone());
            is_progress(&wire.ask(&call).await, &token, 20);
        }
        no_late_progress(&wire).await;
    }
}

/// A body that reports faster than its client reads loses reports on the way, never the last.
#[tokio::test]
async fn a_flood_of_progress_ends_with_the_last() {
    for wire in Wire::both().await.into_iter().chain(Wire::legacy().await) {
        let token = json!("flood");
        let call = Request::call("report", json!({"steps": 3000}))
            .undeclared()
            .meta("progressToken", token.clone());
        is_progress(&wire.ask(&call).await, &token, 3000);
    }
}

/// 2025-11-25, "Progress": the same.
#[tokio::test]
async fn progress_of_a_call_in_a_session_increases_and_ends_before_the_response() {
    for wire in Wire::legacy().await {
        let token = json!("a-token");
        let call = Request::call("report", json!({"steps": 20})).meta("progressToken", token.clone());
        is_progress(&wire.ask(&call).await, &token, 20);
        no_late_progress(&wire).await;
    }
}

/// On stdio late notifications would show up before the responses that follow.
async fn no_late_progress(wire: &Wire) {
    if wire.is_http() {
        return;
    }
    let plain = Request::call("plain", json!({"text": "a", "times": 1}));
    wire.ask(&plain).await.result();
    let mut responses = 0;
    let received = wire.received();
    let expected = received
        .iter()
        .filter(|message| message.get("result").is_some())
        .count();
    for message in received {
        if message.get("result").is_some() {
            responses += 1;
        } else if message["method"] == "notifications/progress" {
            assert!(responses < expected - 1, "after its response: {message}");
        }
    }
}

/// 2026-07-28, "Progress": only a request that carries a token gets notifications.
#[tokio::test]
async fn without_a_token_there_is_no_progress() {
    for wire in Wire::both().await.into_iter().chain(Wire::legacy().await) {
        let reply = wire
            .ask(&Request::call("report", json!({"steps": 5})).undeclared())
            .await;
        assert_eq!(reply.words(), "5 steps");
        assert!(reply.notifications.is_empty());
        if !wire.is_http() {
            assert!(wire.received().iter().all(|message| message.get("method").is_none()));
        }
    }
}

/// Tasks, "Task Status Notifications": `notifications/progress` is not supported on tasks; reports are the status
/// message.
#[tokio::test]
async fn a_task_shows_its_progress_as_its_status_message_and_sends_none() {
    for wire in Wire::both().await {
        let call = Request::call("report", json!({"steps": 7})).meta("progressToken", json!("t"));
        let reply = wire.ask(&call).await;
        assert_eq!(reply.result()["resultType"], "task");
        assert!(reply.notifications.is_empty());
        let id = reply.result()["taskId"].as_str().unwrap();
        let task = wire.settled(id).await;
        assert_eq!(task["statusMessage"], "7/7: step 7");
        if !wire.is_http() {
            assert!(wire.received().iter().all(|message| message.get("method").is_none()));
        }
    }
}
