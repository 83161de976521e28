//! How a test fails: in words that say what to do.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mcp_tasks::prelude::*;
use mcp_tasks::testing::{TestFailure, TestTool};
use serde_json::json;

#[derive(Deserialize, JsonSchema, ElicitForm)]
struct Confirm {
    publish: bool,
}

/// Asks one thing.
#[mcp_task]
async fn ask(ctx: ToolContext) -> Result<String, ToolError> {
    let answer = ctx.elicit::<Confirm>("Publish it?").key("confirm").await?;
    Ok(answer.accepted().is_some_and(|confirm| confirm.publish).to_string())
}

async fn words(test: TestTool) -> String {
    test.try_run().await.unwrap_err().to_string()
}

#[tokio::test]
async fn a_question_without_an_answer_is_named() {
    let said = words(TestTool::new::<ask>().answer("confrim", json!({"publish": true}))).await;
    assert_eq!(
        said,
        r#"the tool asks "confirm" ("Publish it?") and the test has no answer; give it one, with `.answer("confirm", ..)` for example. Not used so far: one for the key "confrim""#
    );
}

#[tokio::test]
async fn an_answer_without_a_question_is_named() {
    let said = words(
        TestTool::new::<ask>()
            .decline("confirm")
            .answer_next(json!({}))
            .cancel("other"),
    )
    .await;
    assert_eq!(
        said,
        r#"the tool ended (a result: false) without asking for all of the test's answers. Not used so far: one for the key "other", one for the next question"#
    );
}

/// Asks for the roots.
#[mcp_task]
async fn roots(ctx: ToolContext) -> Result<(), ToolError> {
    let _: serde_json::Value = ctx.roots().await?;
    Ok(())
}

#[tokio::test]
async fn an_answer_of_another_kind_is_none() {
    let said = words(TestTool::new::<roots>().answer_next(json!({"publish": true}))).await;
    assert_eq!(
        said,
        r#"the test's answer to "elicit-0" (roots/list) is no answer to roots/list"#
    );
}

/// Counts its runs in what it asks.
#[mcp_task]
async fn counts(ctx: ToolContext, runs: State<AtomicU32>) -> Result<(), ToolError> {
    let run = runs.fetch_add(1, Ordering::Relaxed);
    ctx.elicit::<Confirm>(format!("Attempt {run}?")).await?;
    Ok(())
}

#[tokio::test]
async fn a_body_that_asks_something_else_is_reported() {
    let failure = TestTool::new::<counts>()
        .state(AtomicU32::new(0))
        .answer_next(json!({"publish": true}));
    let failure = failure.try_run().await.unwrap_err();
    let TestFailure::Mismatch {
        mismatch,
        run: 2,
        ending: None,
        ..
    } = &failure
    else {
        panic!("{failure}")
    };
    assert_eq!(mismatch.ordinal, 0);
    let said = failure.to_string();
    assert!(
        said.contains("Attempt 0?") && said.contains("Attempt 1?") && said.contains("Usual causes"),
        "{said}"
    );
}

/// Names a step after the run it is in.
#[mcp_task]
async fn renames(ctx: ToolContext, runs: State<AtomicU32>) -> Result<(), ToolError> {
    let run = runs.fetch_add(1, Ordering::Relaxed);
    ctx.step(&format!("step {run}"), || async { Ok::<_, ToolError>(()) })
        .await?;
    ctx.step("last", || async { Ok::<_, ToolError>(()) }).await
}

#[tokio::test]
async fn only_replaying_shows_a_body_without_questions_that_does_not_repeat_itself() {
    let test = TestTool::new::<renames>();
    test.clone().state(AtomicU32::new(0)).run().await.result();
    let said = words(test.state(AtomicU32::new(0)).replaying()).await;
    assert!(
        said.starts_with("on run 2 of its body: ") && said.contains(r#"step "step 1" now"#),
        "{said}"
    );
}

/// Returns what is another thing every time.
#[mcp_task]
async fn drifts(ctx: ToolContext, runs: State<AtomicU32>, ends: bool) -> Result<u32, ToolError> {
    let run = runs.fetch_add(1, Ordering::Relaxed);
    if ends && run > 0 {
        return Ok(0);
    }
    ctx.step("work", || async { Ok::<_, ToolError>(()) }).await?;
    Ok(run)
}

#[tokio::test]
async fn a_body_that_ends_otherwise_is_reported() {
    let test = TestTool::new::<drifts>().state(AtomicU32::new(0)).replaying();
    let said = words(test.argument("ends", false)).await;
    assert!(
        said.contains("it ended with a result: 0, and when it was run again") && said.contains("a result: 1"),
        "{said}"
    );
    let test = TestTool::new::<drifts>().state(AtomicU32::new(0)).replaying();
    let said = words(test.argument("ends", true)).await;
    assert!(said.contains("does not get there now"), "{said}");
}

/// Fails when it comes by again.
#[mcp_task]
async fn fails_later(ctx: ToolContext, runs: State<AtomicU32>) -> Result<(), ToolError> {
    if runs.fetch_add(1, Ordering::Relaxed) > 0 {
        return Err(ToolError::new("no more"));
    }
    ctx.step("work", || async { Ok::<_, ToolError>(()) }).await?;
    ctx.step("more work", || async { Ok::<_, ToolError>(()) }).await
}

#[tokio::test]
async fn an_error_before_the_body_is_where_it_was_is_reported_with_both() {
    let said = words(TestTool::new::<fails_later>().state(AtomicU32::new(0)).replaying()).await;
    assert!(
        said.starts_with("on run 2 of its body, which ended with an error result: no more: ")
            && said.contains("does not get there now"),
        "{said}"
    );
}

/// Uses one key for two questions.
#[mcp_task]
async fn one_key(ctx: ToolContext) -> Result<(), ToolError> {
    ctx.elicit::<Confirm>("First?").key("k").await?;
    ctx.elicit::<Confirm>("Second?").key("k").await?;
    Ok(())
}

/// Fails in its own way.
#[mcp_task]
async fn explodes() {
    panic!("on purpose")
}

/// Waits for what never comes.
#[mcp_task]
async fn hangs(ctx: ToolContext, in_step: bool) -> Result<(), ToolError> {
    if in_step {
        ctx.step("nothing", std::future::pending::<Result<(), ToolError>>)
            .await?;
    }
    std::future::pending().await
}

/// Sleeps longer than it lives.
#[mcp_task(ttl = "PT1M")]
async fn oversleeps(ctx: ToolContext) -> Result<(), ToolError> {
    ctx.sleep(Duration::from_secs(61)).await
}

#[tokio::test]
async fn mistakes_in_a_body_are_failures() {
    let said = words(TestTool::new::<one_key>().reply_with(|_| Some(mcp_tasks::testing::TestAnswer::decline()))).await;
    assert!(said.contains("was used for two questions"), "{said}");
    assert_eq!(
        words(TestTool::new::<explodes>()).await,
        "the tool panicked: on purpose"
    );
    for in_step in [true, false] {
        for test in [TestTool::new::<hangs>(), TestTool::new::<hangs>().replaying()] {
            let said = words(test.argument("in_step", in_step)).await;
            assert!(said.starts_with("the tool hangs"), "{said}");
        }
    }
    let said = words(TestTool::new::<oversleeps>()).await;
    assert!(
        said.contains("2026-07-28T00:01:01.000Z and the task at 2026-07-28T00:01:00.000Z"),
        "{said}"
    );
    TestTool::new::<oversleeps>().as_call().run().await.result();
}

/// Needs what the test does not give.
#[mcp_task]
async fn needy(numbers: State<Vec<u8>>) -> String {
    numbers.len().to_string()
}

#[tokio::test]
async fn a_tool_that_would_not_start_does_not_run() {
    let said = words(TestTool::new::<needy>()).await;
    assert!(said.contains("State<alloc::vec::Vec<u8>>"), "{said}");
}

#[tokio::test]
#[should_panic(expected = "test of the tool `ask` at tests/in_process/kit/failures.rs:")]
async fn run_panics_with_the_words_and_the_place() {
    TestTool::new::<ask>().run().await.result();
}

#[test]
#[should_panic(expected = "the arguments of a tool are a JSON object, and these are [1]")]
fn arguments_are_an_object() {
    let _ = TestTool::new::<ask>().arguments([1]);
}

/// A step waits for the body, which waits for another step.
#[mcp_task]
async fn entangled(ctx: ToolContext) -> Result<u8, ToolError> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let first = async {
        let first = ctx.step("first", || async { Ok::<_, ToolError>(1) }).await?;
        let second = ctx.step("second", || async { Ok::<_, ToolError>(first + 1) }).await?;
        let _ = tell.send(second);
        Ok::<_, ToolError>(())
    };
    let other = ctx.step("other", || async {
        Ok::<u8, ToolError>(told.await.unwrap_or_default())
    });
    let (first, other) = tokio::join!(first, other);
    first?;
    other
}

#[tokio::test]
async fn steps_that_hang_on_each_other_are_let_go_on() {
    let outcome = TestTool::new::<entangled>().run().await;
    assert_eq!(outcome.value::<u8>(), 2);
}

#[tokio::test]
async fn work_in_the_real_world_is_waited_for() {
    /// Waits for a thread.
    #[mcp_task(ttl = "P1D")]
    async fn slow(ctx: ToolContext) -> Result<String, ToolError> {
        let work = || async {
            let work = tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(30)));
            work.await.map_err(ToolError::from)
        };
        tokio::select! {
            biased;
            slept = ctx.sleep(Duration::from_secs(1)) => slept.map(|()| "slept".to_owned()),
            done = ctx.step("block", work) => done.map(|()| "done".to_owned()),
        }
    }
    let begun = Instant::now();
    assert_eq!(TestTool::new::<slow>().replaying().run().await.text(), "done");
    assert!(begun.elapsed() >= Duration::from_millis(30));
}
