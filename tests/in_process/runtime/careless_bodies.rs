//! What careless bodies do, and what must not become of their tasks.

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::iter;
use mcp_tasks::prelude::*;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::harness::{Log, Mode, Node, Word, code, keys, status, text, word};

/// Starts a step, gives it a moment, and asks whether to wait for it while it is still at hand.
#[mcp_task]
async fn impatient(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
    let work = || async {
        log.push("worked");
        sleep(Duration::from_secs(3)).await;
        Ok::<_, ToolError>(7_u32)
    };
    let mut slow = pin!(ctx.step("slow", work));
    if let Ok(done) = timeout(Duration::from_secs(1), &mut slow).await {
        return Ok(format!("{} at once", done?));
    }
    let answer = word(ctx.elicit::<Word>("It takes long. Wait?").await?);
    Ok(format!("{answer}: {}", slow.await?))
}

/// Asks after each result while further steps are under way.
#[mcp_task]
async fn buffered(ctx: ToolContext) -> Result<String, ToolError> {
    let mut done = iter(0..4_u64)
        .map(|n| {
            ctx.step("file", move || async move {
                sleep(Duration::from_secs(n)).await;
                Ok::<_, ToolError>(n)
            })
        })
        .buffered(2);
    let mut words = Vec::new();
    while let Some(n) = done.next().await {
        let n = n?;
        words.push(word(ctx.elicit::<Word>(format!("Keep {n}?")).await?));
    }
    Ok(words.join(" "))
}

/// Answers whatever is asked until the task has ended.
async fn answer_all(client: &crate::harness::Client, id: &str) -> Value {
    loop {
        let task = client.settled(id).await;
        if status(&task) != "input_required" {
            return task;
        }
        for key in keys(&task) {
            client.say(id, key, "yes").await;
        }
    }
}

/// A question is published although a step that was started is not polled while it waits; the step is done again.
#[tokio::test(start_paused = true)]
async fn a_step_that_is_not_polled_does_not_keep_a_question_back() {
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<impatient>()).await;
    let id = client.start("impatient", json!({})).await;
    assert_eq!(text(&answer_all(&client, &id).await), "yes: 7");
    assert!(node.log.count("worked") >= 2, "{:?}", node.log.lines());
}

/// The same where a stream holds the steps.
#[tokio::test(start_paused = true)]
async fn a_stream_of_steps_does_not_keep_a_question_back() {
    let (_node, client) = Node::start(Mode::Straight, |b| b.register::<buffered>()).await;
    let id = client.start("buffered", json!({})).await;
    assert_eq!(text(&answer_all(&client, &id).await), "yes yes yes yes");
}

/// A value that cannot be kept: JSON has no such number.
#[derive(Serialize, Deserialize)]
struct Odd(f64);

/// Goes on after a step whose result cannot be kept.
#[mcp_task]
async fn unkeepable(ctx: ToolContext) -> Result<String, ToolError> {
    let odd = ctx.step("odd", || async { Ok::<_, ToolError>(Odd(f64::NAN)) }).await;
    let first = odd.err().map(|error| error.to_string()).unwrap_or_default();
    let answer = word(ctx.elicit::<Word>("Go on?").await?);
    Ok(format!("{answer}: {first}"))
}

/// It is an error that is kept like any other, and the body repeats itself.
#[tokio::test(start_paused = true)]
async fn a_result_that_cannot_be_kept_is_an_error_of_its_step() {
    let (_node, client) = Node::start(Mode::Straight, |b| b.register::<unkeepable>()).await;
    let id = client.start("unkeepable", json!({})).await;
    let end = text(&answer_all(&client, &id).await).to_owned();
    assert!(
        end.starts_with("yes: the result of step \"odd\" cannot be kept"),
        "{end}"
    );
}

/// Stops its helpers with the context's token, in a scope of its own.
#[mcp_task]
async fn tidy(ctx: ToolContext) -> String {
    {
        let _helpers = ctx.cancellation().clone().drop_guard();
        sleep(Duration::from_secs(1)).await;
    }
    sleep(Duration::from_secs(1)).await;
    "done".to_owned()
}

/// What a body does with its token ends no run.
#[tokio::test(start_paused = true)]
async fn a_body_that_fires_its_own_token_runs_to_its_end() {
    let (_node, client) = Node::start(Mode::Straight, |b| b.register::<tidy>()).await;
    let id = client.start("tidy", json!({})).await;
    assert_eq!(text(&client.settled(&id).await), "done");
}

/// Returns a value nested deeper than JSON parsers follow.
#[mcp_task]
async fn deep() -> mcp_tasks::rmcp::model::CallToolResult {
    let value = (0..200).fold(json!(1), |inner, _| json!([inner]));
    mcp_tasks::rmcp::model::CallToolResult::structured(value)
}

/// A result that no poll could show is not stored as one.
#[tokio::test(start_paused = true)]
async fn a_result_that_cannot_be_shown_fails_the_task() {
    let (_node, client) = Node::start(Mode::Straight, |b| b.register::<deep>()).await;
    let id = client.start("deep", json!({})).await;
    let task = client.settled(&id).await;
    assert_eq!((status(&task), code(&task)), ("failed", -32603), "{task}");
    assert_eq!(task["error"]["message"], "The tool's result cannot be sent", "{task}");
    assert_eq!(task["statusMessage"], task["error"]["message"], "{task}");
}

async fn broken_guard(_caller: &Caller) -> Result<(), Denied> {
    panic!("the guard is broken")
}

/// Is guarded by something that panics.
#[mcp_task(guard = broken_guard)]
async fn guarded() {}

/// A panic outside the body is answered too, in general words, and the server goes on.
#[tokio::test(start_paused = true)]
async fn a_panic_in_a_guard_is_answered() {
    let (_node, client) = Node::start(Mode::Straight, |b| b.register::<guarded>().register::<tidy>()).await;
    let answer = timeout(Duration::from_secs(60), client.call("guarded", json!({})))
        .await
        .expect("an answer");
    assert_eq!(answer.expect_err("an error").code.0, -32603);
    let id = client.start("tidy", json!({})).await;
    assert_eq!(text(&client.settled(&id).await), "done");
}
