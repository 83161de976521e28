//! What counts as an answer, on every carrier.

use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::model::ErrorData;
use serde_json::{Value, json};

use crate::carriers::lab::{Lab, go, yes};
use crate::harness::{Reply, Way, accept, done, no_user};

#[tokio::test(start_paused = true)]
async fn two_questions_in_a_row_with_steps_around_them_run_each_step_once() {
    for way in Way::ALL {
        let lab = Lab::new();
        assert_eq!(
            lab.run(way, "pair", json!({}), yes).await,
            done("1 true 1 true 1"),
            "{way:?}"
        );
        for step in ["before", "between", "after"] {
            assert_eq!(lab.work.count(step), 1, "{way:?}: {step}");
        }
    }
}

/// Elicitation, "Response Actions": declining and cancelling are answers, and have no content.
#[tokio::test(start_paused = true)]
async fn declining_and_cancelling_are_answers_whatever_their_content() {
    for (answer, shown) in [
        (json!({"action": "decline"}), "Decline"),
        (json!({"action": "decline", "content": {"go": 7}}), "Decline"),
        (json!({"action": "cancel", "content": null}), "Cancel"),
        (json!({"action": "cancel", "content": [1]}), "Cancel"),
    ] {
        for way in Way::ALL {
            let answer = answer.clone();
            let outcome = Lab::new()
                .run(way, "both", json!({}), move |_| Ok(answer.clone()))
                .await;
            assert_eq!(outcome, done(format!("{shown} {shown}")), "{way:?}");
        }
    }
}

/// Answers wrongly `wrong` times, then rightly; keeps what it was asked.
fn clumsy(wrong: usize, how: Value) -> impl Fn(&Value) -> Result<Value, ErrorData> + Send + Sync + 'static {
    let asked = AtomicUsize::new(0);
    move |request| {
        let before = asked.fetch_add(1, Ordering::SeqCst);
        let message = request["params"]["message"].as_str().unwrap();
        assert_eq!(
            before == 0,
            message == "redeem?",
            "asked again with the reason in front: {message}"
        );
        assert!(message.ends_with("redeem?"), "{message}");
        Ok(if before < wrong { how.clone() } else { go() })
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_fit_is_asked_for_again_and_the_third_time_is_the_last() {
    for wrong in [
        json!({"action": "accept"}),
        accept(json!({"go": "yes"})),
        accept(json!({"go": 1})),
        accept(json!([])),
    ] {
        for way in Way::ALL {
            let lab = Lab::new();
            let outcome = lab.run(way, "once_only", json!({}), clumsy(2, wrong.clone())).await;
            assert_eq!(outcome, done("true 1"), "{way:?}");
            let (text, is_error) = lab
                .run(way, "once_only", json!({}), clumsy(3, wrong.clone()))
                .await
                .unwrap();
            assert!(is_error && text.contains("did not fit the form"), "{way:?}: {text}");
        }
    }
}

/// A key is used once in a task's life, and within one call (Tasks extension, "Task Update Requests").
#[tokio::test(start_paused = true)]
async fn the_same_words_asked_again_have_another_key_and_stay_under_one_until_they_are_answered() {
    let lab = Lab::new();
    let none = json!({});
    let client = lab.client(Way::Rounds, no_user).await;
    let mut round = client.begin("insist", &none).await.asked();
    for ordinal in 0..3 {
        let key = format!("elicit-{ordinal}");
        assert_eq!(round.keys(), [key.as_str()]);
        round = client.retry("insist", &none, &round, json!({})).await.asked();
        assert_eq!(round.keys(), [key.as_str()]);
        let answers = json!({key: accept(json!({"go": ordinal != 1}))});
        match client.retry("insist", &none, &round, answers).await {
            Reply::Asked(next) => round = next,
            reply => assert_eq!(reply.done(), done("[true, false, true]")),
        }
    }

    let client = lab.client(Way::Task, no_user).await;
    let id = client.begin("insist", &none).await.task();
    for ordinal in 0..3 {
        let key = format!("elicit-{ordinal}");
        let task = client.settled(&id).await;
        assert_eq!(
            task["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(),
            [&key]
        );
        client.answer(&id, json!({key: go()})).await;
    }
    assert_eq!(client.see_through(&id).await, done("[true, true, true]"));
    let live = lab.client(Way::Live, yes).await;
    assert_eq!(live.converse("insist", none).await, done("[true, true, true]"));
    assert_eq!(live.asked().len(), 3);
}

/// Tasks extension, "Task Update Requests": what is unknown or answered already is ignored.
#[tokio::test(start_paused = true)]
async fn a_task_takes_what_is_an_answer_and_resumes_once() {
    let lab = Lab::new();
    let client = lab.client(Way::Task, no_user).await;
    let id = client.begin("pair", &json!({})).await.task();
    // Before it was asked, while the first run unwinds: ignored, or taken if it was asked in time.
    client
        .answer(&id, json!({"elicit-3": accept(json!({"go": false}))}))
        .await;
    let task = client.settled(&id).await;
    assert_eq!(task["status"], "input_required");
    for nothing in [
        json!({}),
        json!({"zzz": {}}),
        json!({"elicit-1": 7}),
        json!({"elicit-1": {"action": "explode"}}),
        json!({"elicit-3": accept(json!({"go": false}))}),
    ] {
        client.answer(&id, nothing).await;
        assert_eq!(client.task(&id).await["inputRequests"], task["inputRequests"]);
    }
    for wrong in [json!([]), json!(null), json!("x")] {
        let error = client
            .raw("tasks/update", json!({"taskId": id, "inputResponses": wrong}))
            .await
            .unwrap_err();
        assert_eq!(error.code.0, -32602);
    }
    let missing = client.raw("tasks/update", json!({"taskId": id})).await.unwrap_err();
    assert_eq!(missing.code.0, -32602);
    let same = json!({"elicit-1": go()});
    futures::future::join_all((0..8).map(|_| client.answer(&id, same.clone()))).await;
    let second = client.settled(&id).await;
    assert!(second["inputRequests"]["elicit-3"].is_object(), "{second}");
    client
        .answer(&id, json!({"elicit-3": accept(json!({"go": false}))}))
        .await;
    assert_eq!(client.see_through(&id).await, done("1 true 1 false 1"));
    assert_eq!(lab.work.count("between"), 1);
}

#[tokio::test(start_paused = true)]
async fn pages_models_and_roots_can_be_asked_for() {
    let person = |request: &Value| {
        Ok(match request["method"].as_str().unwrap() {
            "elicitation/create" => json!({"action": "accept"}),
            "roots/list" => json!({"roots": [{"uri": "file:///home"}]}),
            _ => json!({
                "role": "assistant",
                "content": {"type": "text", "text": "Paris"},
                "model": "m",
            }),
        })
    };
    for way in Way::ALL {
        let lab = Lab::new();
        assert_eq!(
            lab.run(way, "visit", json!({}), person).await,
            done("Accept(())"),
            "{way:?}"
        );
        assert_eq!(
            lab.run(way, "model", json!({}), person).await,
            done("\"Paris\""),
            "{way:?}"
        );
        assert_eq!(
            lab.run(way, "places", json!({}), person).await,
            done("\"file:///home\""),
            "{way:?}"
        );
    }
}
