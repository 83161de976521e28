//! Calls that become tasks where their function says so.

use rmcp::model::ErrorCode;
use serde_json::{Value, json};

use crate::carriers::lab::{Lab, go, yes};
use crate::harness::{Reply, Way, done, no_user};

#[tokio::test(start_paused = true)]
async fn questions_before_the_point_are_rounds_and_those_after_it_are_the_tasks() {
    let lab = Lab::new();
    let client = lab.client(Way::Task, yes).await;
    let none = json!({});
    let round = client.begin("deferred", &none).await.asked();
    assert_eq!(round.keys(), ["elicit-1"]);
    assert_eq!(lab.creates(), 0);
    let id = client
        .retry("deferred", &none, &round, json!({"elicit-1": go()}))
        .await
        .task();
    assert_eq!(lab.creates(), 1);
    let task = client.settled(&id).await;
    assert!(task["inputRequests"]["elicit-4"].is_object(), "{task}");
    assert_eq!(client.see_through(&id).await, done("1 true 1 true true"));
    assert_eq!(
        (lab.work.count("before"), lab.work.count("after")),
        (1, 1),
        "what was done comes along"
    );
}

#[tokio::test(start_paused = true)]
async fn a_function_that_returns_before_the_point_gives_the_plain_result() {
    let lab = Lab::new();
    assert_eq!(
        lab.run(Way::Task, "deferred", json!({"stop": true}), yes).await,
        done("stopped")
    );
    assert_eq!(lab.creates(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_last_round_sent_again_and_at_the_same_time_makes_one_task() {
    let lab = Lab::new();
    let client = lab.client(Way::Task, yes).await;
    let none = json!({});
    let round = client.begin("deferred", &none).await.asked();
    let last = |answer: Value| client.retry("deferred", &none, &round, json!({"elicit-1": answer}));
    let at_once = futures::future::join_all((0..8).map(|_| last(go()))).await;
    let ids: Vec<_> = at_once.into_iter().map(Reply::task).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let another_answer = last(json!({"action": "decline"})).await.task();
    assert_eq!(another_answer, ids[0]);
    assert_eq!(client.see_through(&ids[0]).await, done("1 true 1 true true"));
    assert_eq!(last(go()).await.task(), ids[0], "when it is over too");
    assert_eq!(lab.work.count("after"), 1);
}

/// A caller must not get room for another task by sending the last round of one again.
#[tokio::test(start_paused = true)]
async fn a_last_round_sent_again_counts_once_against_the_quota_and_never_less() {
    let lab = Lab::with(&[("mcp.tasks.quota.open-per-principal", "2")]);
    let client = lab.client(Way::Task, no_user).await;
    let none = json!({});
    let mut rounds = Vec::new();
    for _ in 0..3 {
        rounds.push(client.begin("deferred", &none).await.asked());
    }
    let last = |round| client.retry("deferred", &none, round, json!({"elicit-1": go()}));
    let first = last(&rounds[0]).await.task();
    futures::future::join_all((0..8).map(|_| last(&rounds[0]))).await;
    let second = last(&rounds[1]).await.task();
    futures::future::join_all((0..8).map(|_| last(&rounds[1]))).await;
    assert_ne!(first, second);
    let (code, _) = last(&rounds[2]).await.done().unwrap_err();
    assert_eq!(code, -31001);
    assert_eq!(last(&rounds[0]).await.task(), first, "which is there needs no room");
    client.raw("tasks/cancel", json!({"taskId": first})).await.unwrap();
    assert_eq!(last(&rounds[0]).await.task(), first);
    let third = last(&rounds[2]).await.task();
    assert!(third != first && third != second);
}

#[tokio::test(start_paused = true)]
async fn the_point_is_nothing_to_clients_that_have_no_tasks() {
    for way in [Way::Rounds, Way::Live] {
        let lab = Lab::new();
        assert_eq!(
            lab.run(way, "deferred", json!({}), yes).await,
            done("1 true 1 true false"),
            "{way:?}"
        );
        assert_eq!(lab.creates(), 0);
    }
}

/// Tasks extension, "Capability Negotiation": nothing runs, and nothing is asked, before the extension is declared.
#[tokio::test(start_paused = true)]
async fn a_tool_for_clients_with_tasks_alone_is_refused_before_it_asks() {
    for way in [Way::Rounds, Way::Live] {
        let lab = Lab::new();
        let client = lab.client(way, no_user).await;
        let (code, _) = client.converse("deferred_only", json!({})).await.unwrap_err();
        assert_eq!(code, ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY.0, "{way:?}");
    }
    assert_eq!(
        Lab::new().run(Way::Task, "deferred_only", json!({}), yes).await,
        done("true")
    );
}

#[tokio::test(start_paused = true)]
async fn the_point_without_the_attribute_is_an_error_that_names_it() {
    for way in Way::ALL {
        let (code, words) = Lab::new().run(way, "not_deferred", json!({}), yes).await.unwrap_err();
        assert_eq!(code, ErrorCode::INTERNAL_ERROR.0);
        assert!(words.contains("#[mcp_task(defer)]"), "{way:?}: {words}");
    }
}

/// The extension is declared per request: who declares it no more goes on in rounds.
#[tokio::test(start_paused = true)]
async fn a_call_whose_next_round_declares_no_tasks_goes_on_in_rounds() {
    let lab = Lab::new();
    let with = lab.client(Way::Task, no_user).await;
    let without = lab.client(Way::Rounds, no_user).await;
    let none = json!({});
    let round = with.begin("deferred", &none).await.asked();
    let second = without
        .retry("deferred", &none, &round, json!({"elicit-1": go()}))
        .await
        .asked();
    assert_eq!(second.keys(), ["elicit-4"]);
    let end = without
        .retry("deferred", &none, &second, json!({"elicit-4": go()}))
        .await
        .done();
    assert_eq!(end, done("1 true 1 true false"));
    assert_eq!(lab.creates(), 0);
}
