//! Questions, and what counts as an answer.

use serde_json::{Value, json};

use crate::protocol::harness::{Request, Wire, until, words};

fn accept(confirm: bool) -> Value {
    json!({"action": "accept", "content": {"confirm": confirm}})
}

fn keys(task: &Value) -> Vec<&str> {
    task["inputRequests"]
        .as_object()
        .map(|requests| requests.keys().map(String::as_str).collect())
        .unwrap_or_default()
}

/// Tasks, "Task Update Requests": a partial set is kept, and the task waits for the rest.
#[tokio::test]
async fn a_partial_answer_is_kept_and_the_rest_is_waited_for() {
    for wire in Wire::both().await {
        let id = wire.create("ask_two", json!({})).await;
        assert_eq!(keys(&wire.settled(&id).await), ["a", "b"]);
        wire.ask(&Request::update(&id, json!({"a": accept(true)})))
            .await
            .is_ack();
        let task = wire.task(&id).await;
        assert_eq!(
            (task["status"].as_str(), keys(&task)),
            (Some("input_required"), vec!["b"])
        );
        wire.ask(&Request::update(&id, json!({"b": accept(false)})))
            .await
            .is_ack();
        assert_eq!(words(&wire.reaches(&id, "completed").await["result"]), "yes no");
    }
}

/// Tasks, "Task Update Requests": responses for keys that are not outstanding are ignored, and so is what is no answer.
#[tokio::test]
async fn unknown_stale_and_malformed_entries_are_ignored() {
    for wire in Wire::both().await {
        let id = wire.create("ask_two", json!({})).await;
        let before = wire.settled(&id).await;
        for responses in [
            json!({}),
            json!({"zzz": accept(true)}),
            json!({"a": 7}),
            json!({"a": null}),
            json!({"a": []}),
            json!({"a": "accept"}),
            json!({"a": {}}),
            json!({"a": {"action": "explode"}}),
            json!({"a": {"content": {"confirm": true}}}),
            json!({"a~2": accept(true), "elicit-0": accept(true)}),
        ] {
            wire.ask(&Request::update(&id, responses.clone())).await.is_ack();
            assert_eq!(wire.task(&id).await, before, "{responses}");
        }
        // What is good counts beside what is not.
        let mixed = json!({"a": accept(true), "zzz": accept(true), "b": 7});
        wire.ask(&Request::update(&id, mixed)).await.is_ack();
        assert_eq!(keys(&wire.task(&id).await), ["b"]);
        // Stale: `a` is answered and cannot be answered again.
        let stale = json!({"a": accept(false), "b": accept(true)});
        wire.ask(&Request::update(&id, stale)).await.is_ack();
        assert_eq!(words(&wire.reaches(&id, "completed").await["result"]), "yes yes");
    }
}

/// Content that does not fit is asked for again, under a key of its own, with the reason in front of the question.
#[tokio::test]
async fn an_accepted_form_that_does_not_fit_is_asked_again_under_another_key() {
    for wire in Wire::both().await {
        let id = wire.create("ask_two", json!({})).await;
        wire.settled(&id).await;
        let empty = json!({"a": {"action": "accept", "content": {}}});
        wire.ask(&Request::update(&id, empty)).await.is_ack();
        let task = wire.task(&id).await;
        assert_eq!(keys(&task), ["a~2", "b"]);
        let message = task["inputRequests"]["a~2"]["params"]["message"].as_str().unwrap();
        assert!(message.contains("confirm") && message.ends_with("A?"), "{message}");

        let none = json!({"a~2": {"action": "accept"}});
        wire.ask(&Request::update(&id, none)).await.is_ack();
        assert_eq!(keys(&wire.task(&id).await), ["a~3", "b"]);
        let wrong = json!({"a~3": {"action": "accept", "content": {"confirm": "yes"}}, "b": accept(true)});
        wire.ask(&Request::update(&id, wrong)).await.is_ack();
        let task = wire.reaches(&id, "completed").await;
        assert_eq!(task["result"]["isError"], true);
        assert!(words(&task["result"]).contains("did not fit"), "{task}");
    }
}

/// 2026-07-28, "Elicitation", "Response Actions": decline and cancel are answers; their content is not looked at.
#[tokio::test]
async fn decline_and_cancel_are_answers_whatever_their_content() {
    for wire in Wire::both().await {
        for (answer, expected) in [
            (json!({"action": "decline"}), "declined"),
            (
                json!({"action": "decline", "content": {"confirm": "odd", "more": [1]}}),
                "declined",
            ),
            (json!({"action": "decline", "content": 7}), "declined"),
            (json!({"action": "cancel"}), "cancelled"),
            (json!({"action": "cancel", "content": null}), "cancelled"),
            (
                json!({"action": "accept", "content": {"confirm": false, "unknown": 1}}),
                "no",
            ),
        ] {
            let id = wire.create("ask", json!({})).await;
            wire.settled(&id).await;
            wire.ask(&Request::update(&id, json!({"go": answer}))).await.is_ack();
            assert_eq!(words(&wire.reaches(&id, "completed").await["result"]), expected);
        }
    }
}

/// Clients answer again on every poll while a key is shown: it is gone before the acknowledgement leaves.
#[tokio::test]
async fn an_answered_key_is_gone_when_the_acknowledgement_arrives() {
    for wire in Wire::both().await {
        let id = wire.create("ask_twice", json!({})).await;
        let first = wire.settled(&id).await;
        let [first_key] = keys(&first)[..] else {
            panic!("{first}")
        };
        wire.ask(&Request::update(&id, json!({first_key: accept(true)})))
            .await
            .is_ack();
        // From here on no poll shows it again.
        let second = until("the second question", async || {
            let task = wire.task(&id).await;
            assert!(!keys(&task).contains(&first_key), "{task}");
            (task["status"] == "input_required").then_some(task)
        })
        .await;
        let [second_key] = keys(&second)[..] else {
            panic!("{second}")
        };
        assert_ne!(first_key, second_key);
        // The first answer once more does not answer the second question.
        wire.ask(&Request::update(&id, json!({first_key: accept(false)})))
            .await
            .is_ack();
        assert_eq!(wire.task(&id).await, second);
        wire.ask(&Request::update(&id, json!({second_key: accept(false)})))
            .await
            .is_ack();
        assert_eq!(words(&wire.reaches(&id, "completed").await["result"]), "yes no");
    }
}

/// Tasks, "Task Update Requests": the same answers many times at once resume the task once.
#[tokio::test]
async fn the_same_update_many_times_at_once_resumes_once() {
    let wire = Wire::http().await;
    let id = wire.create("ask", json!({})).await;
    wire.settled(&id).await;
    let update = Request::update(&id, json!({"go": accept(true)}));
    let (a, b, c, d) = tokio::join!(
        wire.ask(&update),
        wire.ask(&update),
        wire.ask(&update),
        wire.ask(&update)
    );
    for ack in [a, b, c, d] {
        ack.is_ack();
    }
    wire.reaches(&id, "completed").await;
    assert_eq!(wire.seen().await.count("ask"), 2, "once to ask, once to go on");
}

/// 2026-07-28, "Multi Round-Trip Requests": a client that declared no elicitation is never asked; the task ends, with
/// words that say why.
#[tokio::test]
async fn a_client_without_elicitation_is_never_asked() {
    for wire in Wire::both().await {
        let capabilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        let id = wire
            .create_by(Request::call("ask", json!({})).capabilities(capabilities.clone()))
            .await;
        let task = wire.settled(&id).await;
        assert_eq!(task["status"], "failed");
        assert_eq!(task["error"]["code"], -32021);
        let required = json!({"requiredCapabilities": {"elicitation": {"form": {}}}});
        assert_eq!(task["error"]["data"], required);
        assert!(
            task["statusMessage"].as_str().unwrap().contains("elicitation"),
            "{task}"
        );

        let id = wire
            .create_by(Request::call("ask_if_possible", json!({})).capabilities(capabilities))
            .await;
        assert_eq!(words(&wire.settled(&id).await["result"]), "cannot be asked");

        // Form mode is not among what this client can do.
        let url_only = json!({"elicitation": {"url": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
        let id = wire
            .create_by(Request::call("ask_if_possible", json!({})).capabilities(url_only))
            .await;
        assert_eq!(words(&wire.settled(&id).await["result"]), "cannot be asked");
    }
}

/// A question to a client that cannot be asked, inside a synchronous call: an error that names what would be needed.
#[tokio::test]
async fn a_call_that_must_ask_a_client_without_elicitation_names_the_missing_capability() {
    for wire in Wire::both().await {
        let reply = wire.ask(&Request::call("ask", json!({})).capabilities(json!({}))).await;
        reply.refused(-32021, 400);
        assert_eq!(
            reply.error()["data"],
            json!({"requiredCapabilities": {"elicitation": {"form": {}}}})
        );
        let reply = wire
            .ask(&Request::call("plain_ask", json!({})).capabilities(json!({})))
            .await;
        reply.refused(-32021, 400);
    }
}

/// A body that asks something else when it runs again is stopped, and no answer reaches another question.
#[tokio::test]
async fn a_body_that_asks_something_else_on_replay_fails_with_a_report() {
    for wire in Wire::both().await {
        let id = wire.create("fickle", json!({})).await;
        let task = wire.settled(&id).await;
        let [key] = keys(&task)[..] else { panic!("{task}") };
        wire.ask(&Request::update(&id, json!({key: accept(true)})))
            .await
            .is_ack();
        let task = wire.reaches(&id, "failed").await;
        assert_eq!(task["error"]["code"], -32602);
        for words in [&task["error"]["message"], &task["statusMessage"]] {
            let words = words.as_str().unwrap();
            for part in ["Attempt 1?", "Attempt 2?", "call 0"] {
                assert!(words.contains(part), "{part}: {words}");
            }
        }
    }
}
