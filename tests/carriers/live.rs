//! Sessions of 2025-11-25: the server asks while the call waits ("Elicitation", "Sampling", "Roots").

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::model::ErrorData;
use serde_json::{Value, json};

use crate::harness::{Lab, Way, accept, done, nobody, yes};

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
        _ => Ok(accept(json!({"go": true}))),
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

/// 2025-11-25, "Progress": the value must increase with each notification.
#[tokio::test(start_paused = true)]
async fn progress_grows_over_the_rounds_of_a_call() {
    let lab = Lab::new();
    let client = lab.client(Way::Live, yes).await;
    assert_eq!(client.converse("reporting", json!({})).await, done("reported"));
    assert_eq!(client.progress(), [1.0, 2.0, 2.5, 3.0]);
}

#[tokio::test(start_paused = true)]
async fn a_round_reports_for_itself_and_a_task_keeps_the_highest() {
    let lab = Lab::new();
    let client = lab.client(Way::Rounds, yes).await;
    assert_eq!(client.converse("reporting", json!({})).await, done("reported"));
    // The retry is a request of its own, with a token of its own.
    assert_eq!(client.progress(), [1.0, 2.0, 1.0, 2.0, 2.5, 3.0]);

    let client = lab.client(Way::Task, nobody).await;
    let id = client.begin("reporting", &json!({})).await.task();
    assert_eq!(client.settled(&id).await["statusMessage"], "2/4");
    client
        .update(&id, json!({"elicit-0": accept(json!({"go": true}))}))
        .await;
    assert_eq!(client.settled(&id).await["statusMessage"], "3/4: late");
    assert!(client.progress().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_session_ends_while_it_asks_ends_too() {
    let lab = Lab::new();
    let client = lab.client(Way::Live, yes).await;
    client.service.cancel().await.unwrap();
    assert_eq!(
        lab.run(Way::Live, "pass_round", json!({}), yes).await,
        done("true"),
        "the server goes on"
    );
}

/// An action that the revision does not have is an answer that no client's SDK lets through; the raw one would be
/// refused. What fits never is a refusal, and the form is asked again with the reason.
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
