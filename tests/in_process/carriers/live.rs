//! Sessions of 2025-11-25: the server asks while the call waits ("Elicitation", "Sampling", "Roots").

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::model::ErrorData;
use rmcp::service::{RequestHandle, RoleClient};
use serde_json::{Value, json};

use crate::carriers::lab::{Lab, go, yes};
use crate::harness::{Client, SILENCE, Way, accept, done, no_user};

#[tokio::test(start_paused = true)]
async fn a_client_that_answers_with_an_error_is_not_asked_again_and_the_tool_is_told() {
    let lab = Lab::new();
    for tool in ["pass_round", "visit", "model", "places"] {
        let refuse = |_: &Value| Err(ErrorData::internal_error("the window is closed", None));
        let client = lab.client(Way::Live, refuse).await;
        let (text, is_error) = client.converse(tool, json!({})).await.unwrap();
        assert!(
            is_error && text.contains("the client could not answer: the window is closed"),
            "{tool}: {text}"
        );
        assert_eq!(client.asked().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn one_error_beside_an_answer_costs_that_question_alone() {
    let lab = Lab::new();
    let person = |request: &Value| match request["params"]["message"].as_str() {
        Some("a?") => Err(ErrorData::internal_error("no a", None)),
        _ => Ok(go()),
    };
    let client = lab.client(Way::Live, person).await;
    let (text, is_error) = client.converse("both", json!({})).await.unwrap();
    assert!(is_error && text.contains("no a"), "{text}");
    assert_eq!(client.asked().len(), 2, "asked at the same time");
}

/// 2025-11-25, "Elicitation", "URL Mode Elicitation Requests": `elicitationId` is unique within the server.
#[tokio::test(start_paused = true)]
async fn every_page_of_a_session_has_an_id_of_its_own() {
    let lab = Lab::new();
    let client = lab.client(Way::Live, yes).await;
    for _ in 0..2 {
        assert_eq!(client.converse("visit", json!({})).await, done("Accept(())"));
    }
    let ids: Vec<_> = client
        .asked()
        .iter()
        .map(|page| page["params"]["elicitationId"].clone())
        .collect();
    assert_eq!(ids.len(), 2);
    assert!(
        ids[0].as_str().is_some_and(|id| id.len() > 20) && ids[0] != ids[1],
        "{ids:?}"
    );
}

fn reported(client: &Client) -> Vec<f64> {
    client.progress().iter().map(|report| report.progress).collect()
}

/// 2025-11-25, "Progress": the value must increase with each notification.
#[tokio::test(start_paused = true)]
async fn progress_grows_over_the_rounds_of_a_call() {
    let lab = Lab::new();
    let client = lab.client(Way::Live, yes).await;
    assert_eq!(client.converse("reporting", json!({})).await, done("reported"));
    assert_eq!(reported(&client), [1.0, 2.0, 2.5, 3.0]);
}

#[tokio::test(start_paused = true)]
async fn a_round_reports_for_itself_and_a_task_keeps_the_highest() {
    let lab = Lab::new();
    let client = lab.client(Way::Rounds, yes).await;
    assert_eq!(client.converse("reporting", json!({})).await, done("reported"));
    // The retry is a request of its own, with a token of its own.
    assert_eq!(reported(&client), [1.0, 2.0, 1.0, 2.0, 2.5, 3.0]);

    let client = lab.client(Way::Task, no_user).await;
    let id = client.begin("reporting", &json!({})).await.task();
    assert_eq!(client.settled(&id).await["statusMessage"], "2/4");
    client.answer(&id, json!({"elicit-0": go()})).await;
    assert_eq!(client.settled(&id).await["statusMessage"], "3/4: late");
    assert!(client.progress().is_empty());
}

/// Begins a call whose question is met with silence, and ends it; what is left of it afterwards.
async fn silence(end: impl AsyncFnOnce(Client, RequestHandle<RoleClient>)) -> usize {
    let lab = Lab::new();
    let client = lab.client(Way::Live, |_: &Value| Ok(SILENCE.into())).await;
    let call = client.send("tools/call", json!({"name": "pass_round"})).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(client.asked().len(), 1);
    end(client, call).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// Client, server and the server's connection are a task each, and so is the silence.
const SILENT: usize = 1;

/// 2025-11-25, "Cancellation": the sender of a request may call it off, and the receiver stops working on it.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_called_off_while_it_asks_ends() {
    let mut kept = None;
    let left = silence(async |client, call| {
        call.cancel(None).await.unwrap();
        kept = Some(client);
    });
    assert_eq!(left.await, SILENT + 3);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_loses_its_session_while_it_asks_ends() {
    let left = silence(async |client, _| {
        client.service.cancellation_token().cancel();
    });
    assert_eq!(left.await, SILENT);
}

#[tokio::test(start_paused = true)]
async fn a_form_filled_in_wrongly_is_asked_again_in_the_same_call() {
    let lab = Lab::new();
    let asked = AtomicUsize::new(0);
    let person = move |_: &Value| {
        let wrong = asked.fetch_add(1, Ordering::SeqCst) == 0;
        Ok(accept(json!({"go": if wrong { json!("x") } else { json!(true) }})))
    };
    let client = lab.client(Way::Live, person).await;
    let begun = tokio::time::Instant::now();
    assert_eq!(client.converse("pass_round", json!({})).await, done("true"));
    let asked = client.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(
        asked[0]["params"]["requestedSchema"],
        asked[1]["params"]["requestedSchema"]
    );
    assert!(begun.elapsed() < Duration::from_secs(1));
}
