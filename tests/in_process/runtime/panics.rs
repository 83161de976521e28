//! Bodies that panic.

use std::time::Duration;

use mcp_tasks::prelude::*;
use serde_json::{Value, json};

use crate::harness::{Log, Mode, Node, Word, code, keys, status, text, word};

const DETAIL: &str = "detail that is nobody's business";

struct PanicsInDrop;

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("{DETAIL}");
        }
    }
}

/// A payload whose own `Drop` panics.
struct Nasty;

impl Drop for Nasty {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("{DETAIL}");
        }
    }
}

/// Panics in the way it is told to.
#[mcp_task]
async fn panicking(how: String) -> String {
    match how.as_str() {
        "macro" => panic!("{DETAIL}"),
        "index" => {
            let empty: Vec<String> = Vec::new();
            let at = how.len();
            empty[at].clone()
        }
        "later" => {
            tokio::time::sleep(Duration::from_millis(10)).await;
            panic!("{DETAIL}")
        }
        "drop" => {
            let _guard = PanicsInDrop;
            tokio::time::sleep(Duration::from_millis(10)).await;
            "done".to_owned()
        }
        "payload" => std::panic::panic_any(42_u8),
        "nasty" => std::panic::panic_any(Nasty),
        other => other.to_owned(),
    }
}

fn assert_internal_error(task: &Value) {
    assert_eq!(code(task), -32603, "{task}");
    // To show the one of them says as much as to show the other.
    assert_eq!(task["error"]["message"], "The tool failed unexpectedly", "{task}");
    assert_eq!(task["statusMessage"], task["error"]["message"], "{task}");
    let all = task.to_string();
    assert!(!all.contains(DETAIL) && !all.contains("panicked"), "{task}");
}

/// JSON-RPC `-32603`: what broke inside stays inside, and the server goes on.
#[tokio::test(start_paused = true)]
async fn a_panic_fails_its_task_with_generic_words_and_the_server_goes_on() {
    let (_node, client) = Node::start(Mode::Straight, |b| b.register::<panicking>()).await;
    for how in ["macro", "index", "later", "drop", "payload", "nasty", "macro", "macro"] {
        let id = client.start("panicking", json!({"how": how})).await;
        assert_internal_error(&client.settled(&id).await);
    }
    let id = client.start("panicking", json!({"how": "fine"})).await;
    assert_eq!(text(&client.settled(&id).await), "fine");
}

/// Inside a call the same is the answer to the call.
#[tokio::test(start_paused = true)]
async fn a_panic_inside_a_call_is_an_internal_error() {
    let (_node, client) = Node::start(Mode::Straight, |b| b.register::<panicking>()).await;
    let plain = client.declaring(json!({}));
    for how in ["macro", "index", "later", "drop", "payload", "nasty"] {
        let error = plain.call("panicking", json!({"how": how})).await.expect_err(how);
        assert_eq!(error.code.0, -32603, "{how}");
        assert!(!error.message.contains(DETAIL), "{error}");
    }
    let fine = plain
        .call("panicking", json!({"how": "fine"}))
        .await
        .expect("an answer");
    assert_eq!(fine["content"][0]["text"], "fine");
}

/// A body that is dropped because it must wait may panic in that drop: the question is asked all the same.
#[tokio::test(start_paused = true)]
async fn a_panic_while_a_parked_body_is_dropped_changes_nothing() {
    struct PanicsOnce(State<Log>);
    impl Drop for PanicsOnce {
        fn drop(&mut self) {
            if self.0.count("panicked") == 0 {
                self.0.push("panicked");
                panic!("{DETAIL}");
            }
        }
    }
    /// Asks, with something dangerous at hand.
    #[mcp_task]
    async fn careless(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
        let _guard = PanicsOnce(log);
        Ok(word(ctx.elicit::<Word>("Well?").await?))
    }
    let (_node, client) = Node::start(Mode::Straight, |b| b.register::<careless>()).await;
    let id = client.start("careless", json!({})).await;
    let task = client.settled(&id).await;
    assert_eq!((status(&task), keys(&task)), ("input_required", vec!["elicit-0"]));
    client.say(&id, "elicit-0", "yes").await;
    assert_eq!(text(&client.settled(&id).await), "yes");
}

/// A panic in a step, after a question, in a task spawned by the body: each ends where it should.
#[tokio::test(start_paused = true)]
async fn a_panic_anywhere_in_a_run_stays_in_that_run() {
    /// Panics inside a step of its second execution.
    #[mcp_task]
    async fn half_way(ctx: ToolContext) -> Result<String, ToolError> {
        ctx.elicit::<Word>("Well?").await?;
        ctx.step("boom", || async {
            if true {
                panic!("{DETAIL}");
            }
            Ok::<_, ToolError>(())
        })
        .await?;
        Ok("done".to_owned())
    }
    /// Lets a task of its own panic, and sees it.
    #[mcp_task]
    async fn elsewhere() -> String {
        let spawned = tokio::spawn(async { panic!("{DETAIL}") });
        let joined: Result<(), _> = spawned.await;
        format!("panicked: {}", joined.is_err_and(|error| error.is_panic()))
    }
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<half_way>().register::<elsewhere>()).await;
    let id = client.start("half_way", json!({})).await;
    client.settled(&id).await;
    client.say(&id, "elicit-0", "yes").await;
    assert_internal_error(&client.settled(&id).await);
    assert!(
        node.store.record(&id).await.ledger.is_empty(),
        "a task that ended keeps no answers"
    );
    let id = client.start("elsewhere", json!({})).await;
    assert_eq!(text(&client.settled(&id).await), "panicked: true");
}
