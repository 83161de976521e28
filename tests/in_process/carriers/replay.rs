//! Bodies that do not repeat themselves, and what authors wrap around questions.

use rmcp::model::ErrorCode;
use serde_json::json;

use crate::carriers::lab::{Lab, go, yes};
use crate::harness::{Way, done};

#[tokio::test(start_paused = true)]
async fn a_body_that_asks_something_else_on_its_next_run_is_stopped_with_a_report() {
    for way in Way::ALL {
        for how in ["clock", "counter", "map", "another question"] {
            let lab = Lab::new();
            let (code, words) = lab.run(way, "restless", json!({"how": how}), yes).await.unwrap_err();
            assert_eq!(code, ErrorCode::INVALID_PARAMS.0, "{way:?} {how}: {words}");
            assert!(words.contains('0'), "the place: {words}");
            let both = match how {
                "counter" => ["attempt 0", "attempt 1"],
                "another question" => ["the first question", "another path"],
                _ => continue,
            };
            assert!(both.iter().all(|question| words.contains(question)), "{words}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_that_is_wrapped_around_a_question_swallows_it() {
    for way in Way::ALL {
        for how in ["default", "timeout", "catch", "boxed", "select"] {
            let lab = Lab::new();
            let end = lab.run(way, "swallow", json!({"how": how}), yes).await;
            assert_eq!(end, done("true"), "{way:?} {how}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn questions_and_steps_beside_each_other_are_asked_together_and_run_once() {
    for way in Way::ALL {
        let lab = Lab::new();
        let end = lab.run(way, "race", json!({"how": "sequences"}), yes).await;
        assert_eq!(end, done("1true1 1true1 1true1"), "{way:?}");
        for step in ["a1", "b1", "c1", "a2", "b2", "c2"] {
            assert_eq!(lab.work.count(step), 1, "{way:?}: {step}");
        }
        let end = lab.run(way, "race", json!({"how": "beside a step"}), yes).await;
        assert_eq!(end, done("Accept(Go { go: true }) 1"), "{way:?}");
        assert_eq!(
            lab.run(way, "race", json!({"how": "unordered"}), yes).await,
            done("3"),
            "{way:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_beside_a_timer_is_asked() {
    for way in Way::ALL {
        let end = Lab::new().run(way, "race", json!({"how": "a timer"}), yes).await;
        assert_eq!(end, done("Accept(Go { go: true })"), "{way:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_from_a_spawned_task_is_an_error_that_says_so() {
    for way in Way::ALL {
        let end = Lab::new().run(way, "race", json!({"how": "spawn"}), yes).await;
        let (text, is_error) = end.unwrap();
        assert!(
            is_error && text.contains("outside the tool's own future"),
            "{way:?}: {text}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn time_randomness_and_keys_are_the_same_on_every_run_and_a_wait_is_waited_once() {
    for way in Way::ALL {
        let lab = Lab::new();
        let begun = tokio::time::Instant::now();
        // A task that waits for so long is put away, and comes by once more.
        let noted = if way == Way::Task { 4 } else { 3 };
        assert_eq!(
            lab.run(way, "steady", json!({}), yes).await,
            done(format!("true {noted} 20")),
            "{way:?}"
        );
        assert_eq!(begun.elapsed().as_secs(), 20, "{way:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_calls_have_two_idempotency_keys() {
    let lab = Lab::new();
    for _ in 0..2 {
        assert_eq!(lab.run(Way::Rounds, "steady", json!({}), yes).await, done("true 3 20"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_retried_tries_until_it_works_and_then_never_again() {
    for way in Way::ALL {
        let lab = Lab::new();
        assert_eq!(
            lab.run(way, "stubborn", json!({}), yes).await,
            done("3 true"),
            "{way:?}"
        );
        assert_eq!(lab.work.count("try"), 3, "{way:?}");
    }
}

/// Parked, then met by a build with another version.
#[tokio::test(start_paused = true)]
async fn a_task_of_another_version_fails_before_it_runs() {
    let lab = Lab::new();
    let client = lab.client(Way::Task, yes).await;
    let id = client.begin("versioned", &json!({})).await.task();
    assert_eq!(client.settled(&id).await["status"], "input_required");
    let newer = lab.sibling(&[("body.version", "2")]);
    let client = newer.client(Way::Task, yes).await;
    client.answer(&id, json!({"elicit-0": go()})).await;
    let (code, words) = client.see_through(&id).await.unwrap_err();
    assert_eq!(code, ErrorCode::INVALID_PARAMS.0);
    assert!(words.contains("handler changed"), "{words}");
}
