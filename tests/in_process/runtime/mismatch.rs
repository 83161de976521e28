//! Bodies that do not repeat themselves, and authors' mistakes with keys.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mcp_tasks::prelude::*;
use serde_json::{Value, json};

use crate::harness::{Client, Log, Mode, Node, Word, code, keys, word};

static ATTEMPTS: AtomicU32 = AtomicU32::new(0);

/// Something else on every run.
fn unstable(what: &str) -> String {
    match what {
        "clock" => format!("{:?}", tokio::time::Instant::now()),
        "uuid" => format!("{:016x}", RandomState::new().build_hasher().finish()),
        "hashmap" => {
            let map: HashMap<u32, u32> = (0..50).map(|n| (n, n)).collect();
            format!("{map:?}")
        }
        _ => format!("attempt {}", ATTEMPTS.fetch_add(1, Ordering::Relaxed)),
    }
}

/// Asks with something in the words that is another thing the next time.
#[mcp_task]
async fn fickle(ctx: ToolContext, log: State<Log>, what: String) -> Result<String, ToolError> {
    let steady = word(ctx.elicit::<Word>("Steady?").await?);
    let second = ctx.elicit::<Word>(format!("Sure ({})?", unstable(&what))).await?;
    log.push(format!("{steady} {}", word(second)));
    Ok("done".to_owned())
}

fn message(task: &Value) -> String {
    assert_eq!(code(task), -32602, "{task}");
    let message = task["error"]["message"].as_str().expect("an error has a message");
    assert_eq!(task["statusMessage"], message, "the words are where people look");
    message.to_owned()
}

async fn answered(client: &Client, tool: &str, arguments: Value, answers: &[(&str, &str)]) -> Value {
    let id = client.start(tool, arguments).await;
    for (key, answer) in answers {
        assert_eq!(keys(&client.settled(&id).await), [*key]);
        tokio::time::sleep(Duration::from_millis(10)).await;
        client.say(&id, key, answer).await;
    }
    client.settled(&id).await
}

/// An answer reaches the question it was given to and no other: where the words change between runs, the task fails and
/// says so.
#[tokio::test(start_paused = true)]
async fn a_question_with_changing_words_is_reported_and_gets_no_answer() {
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<fickle>()).await;
    for what in ["clock", "uuid", "hashmap", "counter"] {
        let answers = [("elicit-0", "first"), ("elicit-1", "second")];
        let task = answered(&client, "fickle", json!({"what": what}), &answers).await;
        let message = message(&task);
        assert!(message.contains("call 1"), "{what}: {message}");
        assert_eq!(
            message.matches("\"Sure (").count(),
            2,
            "{what}: both questions: {message}"
        );
        assert!(
            message.contains("HashMap") && message.contains("clock"),
            "{what}: causes: {message}"
        );
        assert!(message.contains("input schema is unchanged"), "{what}: {message}");
    }
    assert!(
        node.log.lines().is_empty(),
        "no body got an answer: {:?}",
        node.log.lines()
    );
}

/// The same for a step's name, and for a question that turns into a step.
#[tokio::test(start_paused = true)]
async fn a_step_with_a_changing_name_is_reported() {
    /// Works under another name each time.
    #[mcp_task]
    async fn renaming(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
        log.push("run");
        let name = format!("fetch {}", log.count("run"));
        let fetched: u32 = ctx.step(&name, || async { Ok::<_, ToolError>(1) }).await?;
        ctx.elicit::<Word>("Well?").await?;
        Ok(fetched.to_string())
    }
    let (_node, client) = Node::start(Mode::Straight, |b| b.register::<renaming>()).await;
    let task = answered(&client, "renaming", json!({}), &[("elicit-1", "yes")]).await;
    let message = message(&task);
    for part in ["call 0", "step \"fetch 1\"", "step \"fetch 2\""] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

/// Reported too: a body that ends before it came to what it asked, and one that skips ahead.
#[tokio::test(start_paused = true)]
async fn a_run_that_leaves_out_a_recorded_call_is_reported() {
    /// Takes another path on every run.
    #[mcp_task]
    async fn forgetful(ctx: ToolContext, log: State<Log>, how: String) -> Result<String, ToolError> {
        log.push("run");
        let again = log.count("run") > 1;
        if again && how == "ends" {
            return Ok("forgot to ask".to_owned());
        }
        if again && how == "other kind" {
            ctx.step("Well?", || async { Ok::<_, ToolError>(()) }).await?;
        }
        Ok(word(ctx.elicit::<Word>("Well?").await?))
    }
    for (how, part) in [
        ("ends", "does not get there now"),
        ("other kind", "was elicit \"Well?\", and is step"),
    ] {
        let (_node, client) = Node::start(Mode::Straight, |b| b.register::<forgetful>()).await;
        let task = answered(&client, "forgetful", json!({"how": how}), &[("elicit-0", "yes")]).await;
        let message = message(&task);
        assert!(message.contains("call 0") && message.contains(part), "{how}: {message}");
    }
}

/// A body that waits for recorded answers in another order than they came waits for ever, unless it is told.
#[tokio::test(start_paused = true)]
async fn a_run_that_waits_out_of_order_is_reported() {
    /// Joins two sequences on its first run, and waits for one of them alone afterwards.
    #[mcp_task]
    async fn reordering(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
        log.push("run");
        let step = |name: &'static str| ctx.step(name, || async { Ok::<_, ToolError>(()) });
        let (first, second) = (step("first"), step("second"));
        if log.count("run") == 1 {
            first.await?;
            second.await?;
        } else {
            second.await?;
        }
        ctx.elicit::<Word>("Well?").await?;
        Ok("done".to_owned())
    }
    let (_node, client) = Node::start(Mode::Straight, |b| b.register::<reordering>()).await;
    let task = answered(&client, "reordering", json!({}), &[("elicit-2", "yes")]).await;
    let message = message(&task);
    assert!(
        message.contains("call 0") && message.contains("step \"first\""),
        "{message}"
    );
}

/// A key is used once in a task's life and leaves the framework's own alone; a body that breaks this fails its task with
/// words for its author, and publishes nothing.
#[tokio::test(start_paused = true)]
async fn a_key_that_cannot_be_used_fails_the_task() {
    /// Asks under two keys.
    #[mcp_task]
    async fn keyed(ctx: ToolContext, first: String, second: String) -> Result<String, ToolError> {
        let first = ctx.elicit::<Word>("First?").key(first).await?;
        let second = ctx.elicit::<Word>("Second?").key(second).await?;
        Ok(format!("{} {}", word(first), word(second)))
    }
    let (_node, client) = Node::start(Mode::Straight, |b| b.register::<keyed>()).await;
    for bad in ["", "a~2", "elicit-0", "elicit-7"] {
        let task = answered(&client, "keyed", json!({"first": bad, "second": "b"}), &[]).await;
        assert_eq!(code(&task), -32603, "{bad}: {task}");
        assert!(
            task["statusMessage"]
                .as_str()
                .is_some_and(|words| words.contains("key")),
            "{task}"
        );
    }
    let task = answered(&client, "keyed", json!({"first": "a", "second": "a"}), &[("a", "one")]).await;
    assert_eq!(code(&task), -32603, "{task}");
    assert!(
        task["statusMessage"]
            .as_str()
            .is_some_and(|words| words.contains("\"a\"")),
        "{task}"
    );
}
