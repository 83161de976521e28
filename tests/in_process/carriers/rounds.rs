//! Rounds of a call (2026-07-28, "Multi Round-Trip Requests").

use std::time::Duration;

use rmcp::model::{CallToolRequestParams, ErrorCode};
use serde_json::json;

use crate::carriers::lab::{Lab, go, yes};
use crate::harness::{Client, Outcome, Way, done, no_user};

/// What every token that is not good is answered with.
const BAD_STATE: &str = "Invalid requestState: it is damaged, has expired, or belongs to another call";

fn bad_state() -> Outcome {
    Err((ErrorCode::INVALID_PARAMS.0, BAD_STATE.to_owned()))
}

#[tokio::test(start_paused = true)]
async fn a_client_of_the_sdk_drives_the_rounds_by_itself() {
    let lab = Lab::new();
    let client = lab.client(Way::Rounds, yes).await;
    let params = CallToolRequestParams::new("pair");
    let result = client.service.call_tool(params).await.unwrap();
    assert_eq!(result.content[0].as_text().unwrap().text, "1 true 1 true 1");
    assert_eq!(client.asked().len(), 2);
    assert_eq!(lab.creates(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_never_a_task_asks_in_rounds_of_clients_with_and_without_tasks() {
    for way in Way::ALL {
        assert_eq!(
            Lab::new().run(way, "pass_round", json!({}), yes).await,
            done("true"),
            "{way:?}"
        );
    }
}

/// "the server SHOULD respond with a new InputRequiredResult requesting the missing information again".
#[tokio::test(start_paused = true)]
async fn a_retry_that_answers_nothing_is_asked_again_and_keeps_what_was_answered() {
    let lab = Lab::new();
    let client = lab.client(Way::Rounds, no_user).await;
    let none = json!({});
    let first = client.begin("both", &none).await.asked();
    assert_eq!(first.keys(), ["a", "b"]);
    for nothing in [
        json!({}),
        json!({"zzz": go()}),
        json!({"a": 7}),
        json!({"a": null}),
        json!({"a": {"action": "explode"}}),
        json!({"a~2": go(), "elicit-0": go(), "": go()}),
    ] {
        let again = client.retry("both", &none, &first, nothing).await.asked();
        assert_eq!(again.questions, first.questions);
    }
    let without = client
        .call_with("both", &none, json!({"requestState": first.state}))
        .await
        .asked();
    assert_eq!(without.questions, first.questions);

    let half = client
        .retry("both", &none, &first, json!({"b": go(), "a": []}))
        .await
        .asked();
    assert_eq!(half.keys(), ["a"]);
    let end = client
        .retry("both", &none, &half, json!({"a": {"action": "decline"}}))
        .await
        .done();
    assert_eq!(end, done("Decline Accept(Go { go: true })"));
}

#[tokio::test(start_paused = true)]
async fn responses_that_are_no_map_are_invalid_params() {
    let lab = Lab::new();
    let client = lab.client(Way::Rounds, no_user).await;
    let first = client.begin("both", &json!({})).await.asked();
    for wrong in [json!([]), json!("x"), json!(7)] {
        let more = json!({"requestState": first.state, "inputResponses": wrong});
        let (code, _) = client.call_with("both", &json!({}), more).await.done().unwrap_err();
        assert_eq!(code, ErrorCode::INVALID_PARAMS.0);
    }
    for wrong in [json!(7), json!({}), json!([first.state])] {
        let more = json!({"requestState": wrong, "inputResponses": {"a": go()}});
        let (code, _) = client.call_with("both", &json!({}), more).await.done().unwrap_err();
        assert_eq!(code, ErrorCode::INVALID_PARAMS.0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_of_null_is_none_and_begins_the_call_anew() {
    let lab = Lab::new();
    let client = lab.client(Way::Rounds, no_user).await;
    let more = json!({"requestState": null, "inputResponses": null});
    let round = client.call_with("pair", &json!({}), more).await.asked();
    assert_eq!(round.keys(), ["elicit-1"]);
}

#[tokio::test(start_paused = true)]
async fn answers_that_come_with_the_first_request_are_taken_once_they_are_asked_for() {
    let lab = Lab::new();
    let client = lab.client(Way::Rounds, no_user).await;
    let none = json!({});
    let early = json!({"inputResponses": {"a": go(), "b": go(), "c": go()}});
    let end = client.call_with("both", &none, early).await.done();
    assert_eq!(end, done("Accept(Go { go: true }) Accept(Go { go: true })"));

    // What is asked for in a later round is not answered ahead of it.
    let early = json!({"inputResponses": {"elicit-1": go(), "elicit-3": go()}});
    let second = client.call_with("pair", &none, early).await.asked();
    assert_eq!(second.keys(), ["elicit-3"]);
    let first = client.begin("pair", &none).await.asked();
    let answers = json!({"elicit-1": go(), "elicit-3": go()});
    let second = client.retry("pair", &none, &first, answers).await.asked();
    assert_eq!(second.keys(), ["elicit-3"]);
}

#[tokio::test(start_paused = true)]
async fn the_same_retry_sent_again_and_at_the_same_time_comes_to_the_same() {
    let lab = Lab::new();
    let client = lab.client(Way::Rounds, no_user).await;
    let none = json!({});
    let first = client.begin("pair", &none).await.asked();
    let retry = || client.retry("pair", &none, &first, json!({"elicit-1": go()}));
    let rounds = futures::future::join_all((0..8).map(|_| retry())).await;
    for round in rounds {
        assert_eq!(round.asked().keys(), ["elicit-3"]);
    }
    assert_eq!(lab.work.count("before"), 1, "its result is in the state");
    assert_eq!(
        lab.work.count("between"),
        8,
        "a state that is used again begins from where it was"
    );
}

#[tokio::test(start_paused = true)]
async fn a_state_is_good_for_its_own_tool_and_arguments_only_and_every_bad_one_is_answered_alike() {
    let lab = Lab::new();
    let client = lab.client(Way::Rounds, no_user).await;
    let ours = json!({"name": "a"});
    let round = client.begin("pair", &ours).await.asked();
    let answers = json!({"elicit-1": go()});
    for arguments in [
        json!({"name": "b"}),
        json!({}),
        json!({"name": null}),
        json!({"name": "a", "more": 1}),
    ] {
        let refused = client.retry("pair", &arguments, &round, answers.clone()).await.done();
        assert_eq!(refused, bad_state(), "{arguments}");
    }
    assert_eq!(
        client.retry("both", &ours, &round, answers.clone()).await.done(),
        bad_state()
    );
    for damage in [
        "",
        "x",
        "null",
        &round.state[1..],
        &round.state[..round.state.len() - 1],
        &"A".repeat(1 << 20),
    ] {
        let more = json!({"requestState": damage, "inputResponses": answers});
        assert_eq!(client.call_with("pair", &ours, more).await.done(), bad_state());
    }
    assert_eq!(
        client.retry("pair", &ours, &round, answers).await.asked().keys(),
        ["elicit-3"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_state_goes_on_at_another_node_with_the_same_key_and_from_another_connection() {
    let lab = Lab::new();
    let round = lab
        .client(Way::Rounds, no_user)
        .await
        .begin("pair", &json!({}))
        .await
        .asked();
    let other = lab.sibling(&[]);
    let client = other.client(Way::Rounds, no_user).await;
    let next = client
        .retry("pair", &json!({}), &round, json!({"elicit-1": go()}))
        .await
        .asked();
    assert_eq!(next.keys(), ["elicit-3"]);
    let foreign = lab.sibling(&[(
        "mcp.tasks.request-state.keys",
        "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=",
    )]);
    let client = foreign.client(Way::Rounds, no_user).await;
    let refused = client
        .retry("pair", &json!({}), &round, json!({"elicit-1": go()}))
        .await
        .done();
    assert_eq!(refused, bad_state());
}

#[tokio::test(start_paused = true)]
async fn a_state_expires() {
    let lab = Lab::new();
    let client = lab.client(Way::Rounds, no_user).await;
    let round = client.begin("pair", &json!({})).await.asked();
    lab.store.clock().advance(Duration::from_secs(59));
    let answers = json!({"elicit-1": go()});
    let next = client.retry("pair", &json!({}), &round, answers.clone()).await.asked();
    lab.store.clock().advance(Duration::from_secs(2));
    assert_eq!(
        client.retry("pair", &json!({}), &round, answers).await.done(),
        bad_state()
    );
    // The next round has a time of its own.
    let end = client
        .retry("pair", &json!({}), &next, json!({"elicit-3": go()}))
        .await
        .done();
    assert_eq!(end, done("1 true 1 true 1"));
}

/// "Servers for which a given requestState must be consumed at most once MUST enforce that invariant server-side."
#[tokio::test(start_paused = true)]
async fn a_state_of_single_use_is_good_once_on_any_node() {
    let lab = Lab::new();
    let client = lab.client(Way::Rounds, no_user).await;
    let other = lab.sibling(&[]);
    let other = other.client(Way::Rounds, no_user).await;
    let none = json!({});
    let round = client.begin("once_only", &none).await.asked();
    let (none, round) = (&none, &round);
    let retry = |client| async move {
        Client::retry(client, "once_only", none, round, json!({"elicit-0": go()}))
            .await
            .done()
    };
    let both = futures::future::join_all((0..8).map(|n| retry(if n % 2 == 0 { &client } else { &other }))).await;
    let won: Vec<_> = both.iter().filter(|outcome| outcome.is_ok()).collect();
    assert_eq!(won, [&done("true 1")]);
    assert!(
        both.iter()
            .filter(|outcome| outcome.is_err())
            .all(|outcome| *outcome == bad_state())
    );
    assert_eq!(lab.work.count("redeemed"), 1);
}

#[tokio::test(start_paused = true)]
async fn the_marks_of_used_states_are_removed_on_a_server_that_never_has_a_task() {
    let lab = Lab::new();
    assert_eq!(lab.run(Way::Rounds, "once_only", json!({}), yes).await, done("true 1"));
    assert_eq!((lab.creates(), lab.store.tally().swept), (1, 0));
    tokio::time::sleep(Duration::from_secs(180)).await;
    assert_eq!(lab.store.tally().swept, 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_of_another_version_is_refused_and_says_so() {
    let lab = Lab::new();
    let client = lab.client(Way::Rounds, no_user).await;
    let round = client.begin("versioned", &json!({})).await.asked();
    let newer = lab.sibling(&[("body.version", "2")]);
    let client = newer.client(Way::Rounds, no_user).await;
    let (code, words) = client
        .retry("versioned", &json!({}), &round, json!({"elicit-0": go()}))
        .await
        .done()
        .unwrap_err();
    assert_eq!(code, ErrorCode::INVALID_PARAMS.0);
    assert!(
        words.contains("handler changed") && words.contains("version 1") && words.contains("version 2"),
        "{words}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_carries_too_much_between_its_rounds_says_so() {
    let lab = Lab::new();
    assert_eq!(
        lab.run(Way::Rounds, "heavy", json!({"bytes": 100_000}), yes).await,
        done("true 100000")
    );
    let (code, words) = lab
        .run(Way::Rounds, "heavy", json!({"bytes": 300_000}), yes)
        .await
        .unwrap_err();
    assert_eq!(code, ErrorCode::INTERNAL_ERROR.0);
    assert!(words.contains("262144 characters"), "{words}");
    for way in [Way::Task, Way::Live] {
        assert_eq!(
            lab.run(way, "heavy", json!({"bytes": 300_000}), yes).await,
            done("true 300000")
        );
    }
}
