//! Work that is a task only if it takes long.

use std::time::Duration;

use rmcp::model::ErrorCode;
use serde_json::{Value, json};

use crate::carriers::lab::{Lab, yes};
use crate::harness::{Way, done, no_user};

fn takes(millis: u64, then: &str) -> Value {
    json!({"millis": millis, "then": then})
}

#[tokio::test(start_paused = true)]
async fn short_work_is_answered_at_once_and_nothing_is_stored() {
    let lab = Lab::new();
    let client = lab.client(Way::Task, no_user).await;
    assert_eq!(client.begin("graceful", &takes(250, "end")).await.done(), done("1 1"));
    assert_eq!(lab.creates(), 0);
}

#[tokio::test(start_paused = true)]
async fn long_work_becomes_a_task_without_starting_over() {
    let lab = Lab::new();
    let client = lab.client(Way::Task, no_user).await;
    let begun = tokio::time::Instant::now();
    let id = client.begin("graceful", &takes(5_000, "end")).await.task();
    let waited = begun.elapsed().as_millis();
    assert!((300..320).contains(&waited), "{waited}");
    let task = client.task(&id).await;
    assert_eq!(task["status"], "working");
    assert_eq!(task["statusMessage"], "1/2: begun", "reported within the grace");
    assert_eq!(client.see_through(&id).await, done("1 1"));
    assert_eq!(begun.elapsed().as_secs(), 5);
    for what in ["started", "one", "two", "ended"] {
        assert_eq!(lab.work.count(what), 1, "{what}");
    }
    assert_eq!(lab.creates(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_question_within_the_grace_makes_the_work_a_task() {
    let lab = Lab::new();
    let client = lab.client(Way::Task, yes).await;
    let begun = tokio::time::Instant::now();
    let id = client.begin("graceful", &takes(100, "ask")).await.task();
    assert!(begun.elapsed() < Duration::from_millis(200));
    let task = client.task(&id).await;
    assert_eq!(task["status"], "input_required");
    assert_eq!(task["statusMessage"], "1/2: begun");
    assert_eq!(client.see_through(&id).await, done("1 1 true"));
    assert_eq!((lab.work.count("one"), lab.work.count("two")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn what_fails_within_the_grace_fails_the_call_and_what_fails_later_the_task() {
    for (then, within) in [
        ("fail", Ok(("as it must".to_owned(), true))),
        ("break", Err((ErrorCode::INTERNAL_ERROR.0, "broken".to_owned()))),
    ] {
        let lab = Lab::new();
        let client = lab.client(Way::Task, no_user).await;
        assert_eq!(client.begin("graceful", &takes(10, then)).await.done(), within);
        assert_eq!(lab.creates(), 0);
        let id = client.begin("graceful", &takes(1_000, then)).await.task();
        assert_eq!(client.see_through(&id).await, within);
    }
    let lab = Lab::new();
    let client = lab.client(Way::Task, no_user).await;
    let (code, words) = client.begin("graceful", &takes(10, "panic")).await.done().unwrap_err();
    assert_eq!(code, ErrorCode::INTERNAL_ERROR.0);
    assert!(!words.contains("secret"), "{words}");
    let id = client.begin("graceful", &takes(1_000, "panic")).await.task();
    let (code, words) = client.see_through(&id).await.unwrap_err();
    assert!(
        code == ErrorCode::INTERNAL_ERROR.0 && !words.contains("secret"),
        "{words}"
    );
}

/// A store takes its time, and the work ends meanwhile: the task is there, and it ends.
#[tokio::test(start_paused = true)]
async fn work_that_ends_while_its_task_is_being_made_ends_the_task() {
    for then in [
        "end",
        "ask",
        "fail",
        "panic",
        "end at once",
        "ask at once",
        "panic at once",
    ] {
        let lab = Lab::new();
        lab.store
            .script(|script| script.create.before = Duration::from_millis(200));
        let client = lab.client(Way::Task, yes).await;
        let id = client.begin("graceful", &takes(350, then)).await.task();
        let end = client.see_through(&id).await;
        match then {
            "end" => assert_eq!(end, done("1 1")),
            "ask" => assert_eq!(end, done("1 1 true")),
            "fail" => assert!(end.unwrap().1),
            "end at once" => assert_eq!(end, done("ended")),
            "ask at once" => assert_eq!(end, done("true")),
            _ => assert!(end.is_err()),
        }
        let runs = if then.starts_with("ask") { 2 } else { 1 };
        assert_eq!(lab.work.count("started"), runs, "{then}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_within_the_grace_leaves_no_task_and_no_work() {
    let lab = Lab::with(&[("mcp.tasks.quota.open-per-principal", "1")]);
    // A session of rmcp's that gives up: it sends notifications/cancelled.
    let client = lab.client(Way::Task, no_user).await;
    client
        .call_taken_back("graceful", takes(1_000, "end"), Duration::from_millis(100))
        .await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(lab.creates(), 0);
    assert_eq!((lab.work.count("started"), lab.work.count("ended")), (1, 0));
    // Its place among the caller's open tasks is free again.
    client.begin("graceful", &takes(1_000, "end")).await.task();
}

#[tokio::test(start_paused = true)]
async fn work_within_its_grace_counts_against_the_quota_and_no_longer_when_it_ends() {
    let lab = Lab::with(&[("mcp.tasks.quota.open-per-principal", "1")]);
    let client = lab.client(Way::Task, no_user).await;
    for then in ["end", "fail", "break", "panic"] {
        let (arguments, more) = (takes(100, then), takes(0, "end"));
        let (_, second) = tokio::join!(client.begin("graceful", &arguments), async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            client.begin("graceful", &more).await
        });
        assert_eq!(second.done().unwrap_err().0, -31001, "{then}");
    }
    let id = client.begin("graceful", &takes(1_000, "end")).await.task();
    assert_eq!(
        client.begin("graceful", &takes(0, "end")).await.done().unwrap_err().0,
        -31001
    );
    client.see_through(&id).await.unwrap();
    assert!(client.begin("graceful", &takes(0, "end")).await.done().is_ok());
}

#[tokio::test(start_paused = true)]
async fn grace_is_nothing_to_clients_that_have_no_tasks() {
    for way in [Way::Rounds, Way::Live] {
        let lab = Lab::new();
        assert_eq!(
            lab.run(way, "graceful", takes(1_000, "ask"), yes).await,
            done("1 1 true"),
            "{way:?}"
        );
        assert_eq!(lab.creates(), 0);
    }
}
