//! What a client can be asked (2026-07-28, "Multi Round-Trip Requests", "Server Requirements": a server must not send a
//! request that the client has not declared support for).

use rmcp::model::ErrorCode;
use serde_json::{Value, json};

use crate::carriers::lab::{Lab, go, yes};
use crate::harness::{Way, done, no_user};

/// The capabilities of a client on `way` that can be asked `what` alone.
fn only(way: Way, what: Value) -> Value {
    let mut capabilities = way.capabilities();
    for name in ["elicitation", "sampling", "roots"] {
        capabilities.as_object_mut().unwrap().remove(name);
    }
    for (name, value) in what.as_object().unwrap() {
        capabilities[name] = value.clone();
    }
    capabilities
}

#[tokio::test(start_paused = true)]
async fn what_a_client_did_not_declare_is_never_asked_and_the_call_ends_with_the_protocols_error() {
    for way in Way::ALL {
        let lab = Lab::new();
        let client = lab.client_with(way, only(way, json!({})), no_user).await;
        for tool in ["pass_round", "visit", "model", "places", "both"] {
            let (code, words) = client.converse(tool, json!({})).await.unwrap_err();
            assert_eq!(
                code,
                ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY.0,
                "{way:?} {tool}: {words}"
            );
            assert!(words.contains("declared no support for"), "{words}");
        }
        assert_eq!(
            client.converse("abilities", json!({})).await,
            done("[false, false, false, false]")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_with_forms_alone_is_asked_forms_alone_and_so_for_pages() {
    for way in Way::ALL {
        let lab = Lab::new();
        for forms in [json!({}), json!({"form": {}})] {
            let client = lab
                .client_with(way, only(way, json!({"elicitation": forms})), yes)
                .await;
            let end = client.converse("gated", json!({})).await;
            assert_eq!(end, done(r#"Ok("Accept(Go { go: true })") Err(true)"#), "{way:?}");
            assert_eq!(
                client.converse("abilities", json!({})).await,
                done("[true, false, false, false]")
            );
        }
        let client = lab
            .client_with(way, only(way, json!({"elicitation": {"url": {}}})), yes)
            .await;
        let end = client.converse("gated", json!({})).await;
        assert_eq!(end, done(r#"Err(true) Ok("Accept(())")"#), "{way:?}");
        let client = lab
            .client_with(way, only(way, json!({"sampling": {}, "roots": {}})), no_user)
            .await;
        assert_eq!(
            client.converse("abilities", json!({})).await,
            done("[false, false, true, true]")
        );
    }
}

/// What was found out before a question stays so after it, and a later question goes by the request at hand.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_retried_with_less_declared_is_not_asked_again_what_it_cannot_be() {
    let lab = Lab::new();
    let able = lab.client(Way::Rounds, no_user).await;
    let unable = lab.client_with(Way::Rounds, json!({}), no_user).await;
    let forms = lab.client_with(Way::Rounds, json!({"elicitation": {}}), no_user).await;
    let none = json!({});

    let round = able.begin("gated", &none).await.asked();
    let nothing = unable.retry("gated", &none, &round, json!({})).await.done();
    assert_eq!(nothing, done("Err(true) Err(true)"));

    let answer = json!({"elicit-0": go()});
    let end = forms.retry("gated", &none, &round, answer.clone()).await.done();
    assert_eq!(end, done(r#"Ok("Accept(Go { go: true })") Err(true)"#));
    let second = able.retry("gated", &none, &round, answer).await.asked();
    assert_eq!(second.keys(), ["elicit-1"]);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_answered_by_a_request_with_less_declared_goes_by_that_request() {
    let lab = Lab::new();
    let client = lab.client(Way::Task, no_user).await;
    let id = client.begin("gated", &json!({})).await.task();
    assert_eq!(client.settled(&id).await["status"], "input_required");
    let forms = lab
        .client_with(Way::Task, only(Way::Task, json!({"elicitation": {}})), no_user)
        .await;
    forms.answer(&id, json!({"elicit-0": go()})).await;
    assert_eq!(
        client.see_through(&id).await,
        done(r#"Ok("Accept(Go { go: true })") Err(true)"#)
    );
}
