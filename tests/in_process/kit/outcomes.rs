//! What an author learns from a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mcp_tasks::context::InputKind;
use mcp_tasks::prelude::*;
use mcp_tasks::testing::{EntryKind, TestAnswer, TestClock, TestEnding, TestTool};
use mcp_tasks::{Principal, Retry};
use serde_json::json;

#[derive(Deserialize, JsonSchema, ElicitForm)]
struct Confirm {
    /// Whether to publish
    publish: bool,
}

#[derive(Default)]
struct Shop {
    sold: AtomicU32,
}

async fn customer(caller: &Caller) -> Result<(), Denied> {
    match caller.subject() {
        Some("mallory") => Err(Denied::new("not you")),
        _ => Ok(()),
    }
}

/// Sells something.
#[mcp_task(guard = customer, ttl = "${shop.ttl:PT1H}")]
async fn sell(ctx: ToolContext, shop: State<Shop>, caller: Caller, goods: String) -> Result<String, ToolError> {
    let sold = || async { Ok::<_, ToolError>(shop.sold.fetch_add(1, Ordering::Relaxed)) };
    let price = ctx.step("price", || async { Ok::<_, ToolError>(goods.len()) }).await?;
    ctx.progress(1.0).total(2.0).message("priced").send();
    let question = format!("{goods} for {price}?");
    let answer = ctx.elicit::<Confirm>(question).key("confirm").await?;
    if !answer.accepted().is_some_and(|confirm| confirm.publish) {
        return Err(ToolError::new("no sale"));
    }
    let number = ctx.step("sell", sold).await?;
    ctx.progress(2.0).total(2.0).send();
    let buyer = caller.subject().unwrap_or("somebody");
    Ok(format!("{goods} number {number} to {buyer}"))
}

fn selling() -> TestTool {
    TestTool::new::<sell>()
        .arguments(json!({"goods": "tea"}))
        .state(Shop::default())
}

#[tokio::test]
async fn a_run_shows_questions_progress_and_steps() {
    for test in [
        selling(),
        selling().replaying(),
        selling().as_call(),
        selling().as_call().replaying(),
    ] {
        let outcome = test.answer("confirm", json!({"publish": true})).run().await;
        assert_eq!(outcome.text(), "tea number 0 to somebody");
        assert_eq!(outcome.value::<String>(), outcome.text());
        let [question] = outcome.questions() else {
            panic!("{:?}", outcome.questions())
        };
        assert_eq!((question.key(), question.message()), ("confirm", "tea for 3?"));
        assert_eq!(question.kind(), InputKind::Form);
        assert_eq!(question.schema().unwrap()["properties"]["publish"]["type"], "boolean");
        assert_eq!(outcome.progress(), ["1/2: priced", "2/2"]);
        assert_eq!(outcome.step_names().collect::<Vec<_>>(), ["price", "sell"]);
        assert!(
            outcome
                .steps()
                .iter()
                .all(|step| step.calls() == 1 && step.is_recorded())
        );
    }
}

#[tokio::test]
async fn replaying_runs_the_body_from_every_entry() {
    let straight = selling().answer_next(json!({"publish": true})).run().await;
    assert_eq!(straight.runs(), 2);
    let replayed = selling().answer_next(json!({"publish": true})).replaying().run().await;
    // Stopped after "price", parked, to the end with "sell", and once more.
    assert_eq!(replayed.runs(), 4);
    let kinds: Vec<_> = replayed
        .ledgers()
        .last()
        .unwrap()
        .entries()
        .iter()
        .map(|entry| entry.kind)
        .collect();
    assert_eq!(kinds, [EntryKind::Step, EntryKind::Elicit, EntryKind::Step]);
}

#[tokio::test]
async fn states_callers_and_configuration_are_those_of_the_test() {
    let shop = Arc::new(Shop::default());
    let alice = Caller::from_principal(Principal::new("alice"));
    let test = TestTool::new::<sell>()
        .argument("goods", "tea")
        .shared_state(shop.clone())
        .caller(alice)
        .config("shop.ttl", "PT5M")
        .answer("confirm", json!({"publish": true}));
    let outcome = test.run().await;
    assert_eq!(outcome.text(), "tea number 0 to alice");
    assert_eq!(outcome.ttl(), Some(Duration::from_secs(300)));
    assert!(outcome.is_task());
    assert_eq!(shop.sold.load(Ordering::Relaxed), 1);
    let inside = test.as_call().run().await;
    assert_eq!((inside.is_task(), inside.ttl()), (false, None));
}

#[tokio::test]
async fn guards_and_arguments_are_checked_as_a_server_does() {
    let mallory = Caller::from_principal(Principal::new("mallory"));
    let denied = selling().caller(mallory).run().await;
    assert_eq!(
        (denied.error().code.0, denied.text().as_str()),
        (-32010, "Forbidden: not you")
    );
    let invalid = TestTool::new::<sell>()
        .state(Shop::default())
        .argument("goods", 7)
        .run()
        .await;
    assert!(
        invalid.error_result().content[0]
            .as_text()
            .unwrap()
            .text
            .contains("goods")
    );
    assert_eq!(invalid.runs(), 0);
}

#[tokio::test]
async fn declining_and_closing_are_answers() {
    for test in [selling().decline("confirm"), selling().cancel("confirm")] {
        assert_eq!(test.replaying().run().await.text(), "no sale");
    }
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_asked_for_again_and_refused_in_the_end() {
    let misfit = json!({"publish": "maybe"});
    let outcome = selling()
        .answer("confirm", &misfit)
        .answer("confirm", json!({"publish": true}))
        .run()
        .await;
    let keys: Vec<_> = outcome.questions().iter().map(|question| question.key()).collect();
    assert_eq!(keys, ["confirm", "confirm~2"]);
    assert!(outcome.questions()[1].message().ends_with("\n\ntea for 3?"));
    outcome.result();
    let outcome = selling()
        .reply_with(move |_| Some(TestAnswer::accept(&misfit)))
        .replaying()
        .run()
        .await;
    assert_eq!(outcome.questions().len(), 3);
    assert!(outcome.text().contains("did not fit the form"), "{}", outcome.text());
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_not_asked() {
    for test in [selling(), selling().as_call()] {
        let outcome = test.capabilities(json!({})).replaying().run().await;
        assert_eq!(outcome.error().code.0, -32021);
        assert!(outcome.questions().is_empty());
    }
    let outcome = selling().reply("confirm", TestAnswer::error("no window")).run().await;
    assert!(outcome.text().contains("no window"));
}

/// Asks twice, if it may.
#[mcp_task]
async fn twice(ctx: ToolContext) -> Result<String, ToolError> {
    ctx.elicit::<Confirm>("First?").await?;
    if !ctx.can_ask(InputKind::Form).await? {
        return Ok("not again".to_owned());
    }
    ctx.elicit::<Confirm>("Second?").await?;
    Ok("twice".to_owned())
}

#[tokio::test]
async fn later_questions_are_gated_by_what_the_answer_declared() {
    let yes = json!({"publish": true});
    let test = TestTool::new::<twice>().answer_next(&yes);
    let outcome = test.clone().later_capabilities(json!({})).replaying().run().await;
    assert_eq!(outcome.text(), "not again");
    assert_eq!(test.answer_next(&yes).run().await.text(), "twice");
}

/// Does a little inside the call and the rest as a task.
#[mcp_task(defer)]
async fn later(ctx: ToolContext) -> Result<bool, ToolError> {
    ctx.elicit::<Confirm>("Now?").key("now").await?;
    ctx.defer().await?;
    ctx.step("rest", || async { Ok::<_, ToolError>(()) }).await?;
    Ok(ctx.task_id().is_some())
}

#[tokio::test]
async fn a_call_that_defers_goes_on_as_a_task() {
    let test = TestTool::new::<later>().answer("now", json!({"publish": true}));
    for test in [test.clone(), test.clone().replaying()] {
        let outcome = test.run().await;
        assert!(outcome.is_task() && outcome.value::<bool>());
        let inside = test.as_call().run().await;
        assert!(!inside.is_task() && !inside.value::<bool>());
    }
    let outcome = test.run().await;
    for ledger in outcome.ledgers() {
        let resumed = TestTool::new::<later>().reply_with(|_| Some(TestAnswer::decline()));
        assert!(resumed.from_ledger(ledger.clone()).run().await.is_task());
    }
}

/// Asks the model and for the roots.
#[mcp_task]
async fn consult(ctx: ToolContext) -> Result<String, ToolError> {
    let said: serde_json::Value = ctx.sample(&json!({"messages": [], "maxTokens": 5})).await?;
    let roots: serde_json::Value = ctx.roots().await?;
    let gone = ctx
        .elicit_url("Log in", "https://example.org/login")
        .key("login")
        .await?;
    Ok(format!("{} {} {gone:?}", said["content"]["text"], roots["roots"]))
}

#[tokio::test]
async fn sampling_roots_and_urls_are_answered_too() {
    let said = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}});
    let test = TestTool::new::<consult>()
        .answer_next(said)
        .answer_next(json!({"roots": []}))
        .answer("login", json!(null));
    let outcome = test.replaying().run().await;
    assert_eq!(outcome.text(), "\"hi\" [] Accept(())");
    assert_eq!(outcome.questions()[2].params()["url"], "https://example.org/login");
}

/// Tries again and again.
#[mcp_task]
async fn stubborn(ctx: ToolContext, tries: State<AtomicU32>) -> Result<u32, ToolError> {
    let work = || async {
        match tries.fetch_add(1, Ordering::Relaxed) {
            0..3 => Err(ToolError::new("not yet")),
            tries => Ok(tries),
        }
    };
    let patience = Retry::times(5)
        .first_delay(Duration::from_secs(60))
        .longest_delay(Duration::from_secs(600));
    ctx.step_with_retry("try", patience, work).await
}

#[tokio::test]
async fn the_delays_of_a_retry_are_not_waited_for() {
    let outcome = TestTool::new::<stubborn>()
        .state(AtomicU32::new(0))
        .replaying()
        .run()
        .await;
    assert_eq!(outcome.value::<u32>(), 3);
    assert_eq!(outcome.steps()[0].calls(), 4);
    assert!(
        outcome.elapsed() >= Duration::from_secs(60 + 120 + 240),
        "{:?}",
        outcome.elapsed()
    );
}

/// Waits for a step, but not for ever.
#[mcp_task(ttl = "P1D")]
async fn limited(ctx: ToolContext, answers: bool) -> Result<String, ToolError> {
    let work = || async move {
        if !answers {
            std::future::pending::<()>().await;
        }
        Ok::<_, ToolError>("in time".to_owned())
    };
    tokio::select! {
        biased;
        slept = ctx.sleep(Duration::from_secs(3600)) => slept.map(|()| "too late".to_owned()),
        done = ctx.step("ask the oracle", work) => done,
    }
}

#[tokio::test]
async fn a_sleep_takes_no_time_and_never_overtakes_a_step() {
    for hours in [0, 1] {
        let test = TestTool::new::<limited>().argument("answers", hours == 0);
        for test in [test.clone(), test.replaying()] {
            let outcome = test.run().await;
            assert_eq!(outcome.text(), if hours == 0 { "in time" } else { "too late" });
            assert_eq!(outcome.elapsed(), Duration::from_secs(hours * 3600));
        }
    }
}

/// Works where it may block.
#[mcp_tool]
fn plain(a: i64, b: i64) -> i64 {
    a + b
}

#[tokio::test]
async fn a_plain_tool_runs_too() {
    let outcome = TestTool::new::<plain>().arguments(json!({"a": 1, "b": 2})).run().await;
    assert_eq!(outcome.value::<i64>(), 3);
    assert!(!outcome.is_task());
    assert!(matches!(outcome.ending(), TestEnding::Result(_)));
}

/// Lives longer.
#[mcp_task(ttl = "PT1M")]
async fn extended(ctx: ToolContext, hours: u64) -> Result<(), ToolError> {
    ctx.extend_ttl(Duration::from_secs(7200)).await?;
    ctx.sleep(Duration::from_secs(hours * 3600)).await
}

#[tokio::test]
async fn a_life_is_as_long_as_it_was_made() {
    let clock = TestClock::new();
    let test = TestTool::new::<extended>().clock(&clock);
    let outcome = test.clone().argument("hours", 1).run().await;
    assert_eq!(outcome.ttl(), Some(Duration::from_secs(7200)));
    let failure = test.argument("hours", 3).try_run().await.unwrap_err();
    assert!(
        failure.to_string().contains("expires while the tool sleeps"),
        "{failure}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_stopped_runtime_does_not_matter() {
    let outcome = TestTool::new::<stubborn>().state(AtomicU32::new(0)).run().await;
    assert_eq!(outcome.value::<u32>(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_may_be_spawned_side_by_side() {
    let test = selling().answer("confirm", json!({"publish": true}));
    let runs = (0..8).map(|_| {
        let test = test.clone().replaying();
        tokio::spawn(async move { test.run().await.runs() })
    });
    for run in runs.collect::<Vec<_>>() {
        assert_eq!(run.await.unwrap(), 4);
    }
}
