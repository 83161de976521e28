//! `ctx.step`: work that is done once.

use std::time::Duration;

use mcp_tasks::prelude::*;
use mcp_tasks_core::TaskStatus;
use rmcp::ErrorData;
use serde_json::json;

use crate::harness::{Log, Mode, Node, Word, code, in_both_modes, keys, text, word};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Page {
    number: u64,
    title: Option<String>,
    bytes: Vec<u8>,
}

in_both_modes! {
    /// A step is done once, whatever happens around it, and its value comes back as it was.
    async fn a_step_is_done_once_and_its_value_kept(mode: Mode) {
        /// Three steps around two questions.
        #[mcp_task]
        async fn pages(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
            let mut seen = Vec::new();
            for number in [1, u64::MAX, 3] {
                let page: Page = ctx
                    .step("fetch", || async {
                        log.push(format!("fetch {number}"));
                        Ok::<_, ToolError>(Page { number, title: None, bytes: vec![0, 255] })
                    })
                    .await?;
                assert_eq!(page, Page { number, title: None, bytes: vec![0, 255] });
                seen.push(page.number.to_string());
                seen.push(word(ctx.elicit::<Word>(format!("Page {number}?")).await?));
            }
            Ok(seen.join(" "))
        }
        let (node, client) = Node::start(mode, |b| b.register::<pages>()).await;
        let id = client.start("pages", json!({})).await;
        for key in ["elicit-1", "elicit-3", "elicit-5"] {
            assert_eq!(keys(&client.settled(&id).await), [key]);
            client.say(&id, key, "ok").await;
        }
        assert_eq!(text(&client.settled(&id).await), format!("1 ok {} ok 3 ok", u64::MAX));
        assert_eq!(node.log.lines(), ["fetch 1", &format!("fetch {}", u64::MAX), "fetch 3"]);
    }

    /// An error is a result: it is kept, and the same on every later run.
    async fn an_error_of_a_step_is_the_same_on_replay(mode: Mode) {
        /// A step that fails, a question, and the error again.
        #[mcp_task]
        async fn failing_step(ctx: ToolContext, log: State<Log>, how: String) -> Result<String, ToolError> {
            let how = how.as_str();
            let step = ctx
                .step("fetch", || async {
                    log.push("fetch");
                    Err::<(), ToolError>(match how {
                        "tool" => ToolError::new(format!("failed {} times", log.count("fetch"))),
                        _ => ToolError::protocol(ErrorData::invalid_params("no such page", Some(json!({"page": 7})))),
                    })
                })
                .await;
            ctx.elicit::<Word>("Well?").await?;
            step.map(|()| String::new())
        }
        for how in ["tool", "protocol"] {
            let (node, client) = Node::start(mode, |b| b.register::<failing_step>()).await;
            let id = client.start("failing_step", json!({"how": how})).await;
            assert_eq!(keys(&client.settled(&id).await), ["elicit-1"]);
            client.say(&id, "elicit-1", "go on").await;
            let task = client.settled(&id).await;
            if how == "tool" {
                assert_eq!((text(&task), &task["result"]["isError"]), ("failed 1 times", &json!(true)));
            } else {
                let error = json!({"code": -32602, "message": "no such page", "data": {"page": 7}});
                assert_eq!((code(&task), &task["error"]), (-32602, &error));
            }
            assert_eq!(node.log.lines(), ["fetch"]);
        }
    }
}

/// The result of a step is in the store before the body sees it: no effect of it can be lost.
#[tokio::test(start_paused = true)]
async fn a_result_reaches_the_body_only_once_it_is_stored() {
    /// One step.
    #[mcp_task]
    async fn stored_first(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
        ctx.step("work", || async {
            log.push("worked");
            Ok::<_, ToolError>(())
        })
        .await?;
        log.push("seen");
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok("done".to_owned())
    }
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<stored_first>()).await;
    node.store.script(|script| {
        script.update.before = Duration::from_millis(100);
        script.update.after = Duration::from_millis(100);
    });
    let id = client.start("stored_first", json!({})).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(node.log.lines(), ["worked"]);
    assert!(node.store.record(&id).await.ledger.is_empty(), "on its way");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(node.store.record(&id).await.ledger.entries().len(), 1, "stored");
    assert_eq!(node.log.lines(), ["worked"], "and not acknowledged yet");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(node.log.lines(), ["worked", "seen"]);
}

/// A task that ended holds no ledger, and steps of a synchronous call store nothing.
#[tokio::test(start_paused = true)]
async fn the_ledger_goes_when_the_task_ends() {
    /// One step.
    #[mcp_task]
    async fn one_step(ctx: ToolContext) -> Result<String, ToolError> {
        ctx.step("work", || async { Ok::<_, ToolError>("worked".to_owned()) })
            .await
    }
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<one_step>()).await;
    let id = client.start("one_step", json!({})).await;
    assert_eq!(text(&client.settled(&id).await), "worked");
    let record = node.store.record(&id).await;
    assert!(record.ledger.is_empty() && record.status == TaskStatus::Completed);
    assert_eq!(record.execution.node, None);
}

/// A value that has no JSON form is an error of the step that names it.
#[tokio::test(start_paused = true)]
async fn a_value_without_a_json_form_is_an_error() {
    use std::collections::BTreeMap;

    /// A step with keys that are no text.
    #[mcp_task]
    async fn unwritable(ctx: ToolContext) -> Result<String, ToolError> {
        ctx.step("odd", || async { Ok::<_, ToolError>(BTreeMap::from([((1, 2), 3)])) })
            .await?;
        Ok("done".to_owned())
    }
    let (_node, client) = Node::start(Mode::Straight, |b| b.register::<unwritable>()).await;
    let id = client.start("unwritable", json!({})).await;
    let task = client.settled(&id).await;
    assert_eq!(task["result"]["isError"], true);
    assert!(
        text(&task).contains("\"odd\"") && text(&task).contains("JSON"),
        "{task}"
    );
}
