//! `tasks/cancel`, wherever the task is in its life.

use std::time::Duration;

use mcp_tasks::host::TaskRuntimeBuilder;
use mcp_tasks::prelude::*;
use serde_json::json;

use crate::harness::{Log, Mode, Node, Pair, TestStore, Word, config, status, text, word};

/// Waits in the way it is told to.
#[mcp_task]
async fn waiting(ctx: ToolContext, log: State<Log>, how: String) -> Result<String, ToolError> {
    let _dropped = log.on_drop("dropped");
    match how.as_str() {
        "sleep" => tokio::time::sleep(Duration::from_secs(600)).await,
        "ask" => log.push(word(ctx.elicit::<Word>("Well?").await?)),
        "block" => {
            let (token, log) = (ctx.cancellation().clone(), log.clone());
            let work = tokio::task::spawn_blocking(move || {
                while !token.is_cancelled() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                log.push("token fired");
            });
            work.await?;
        }
        "step" => {
            let step = ctx.step("endless", || async {
                let _dropped = log.on_drop("step dropped");
                tokio::time::sleep(Duration::from_secs(600)).await;
                Ok::<_, ToolError>(())
            });
            step.await?;
        }
        _ => {}
    }
    log.push("ended");
    Ok("done".to_owned())
}

async fn cancelled(how: &str) -> Vec<String> {
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<waiting>()).await;
    let id = client.start("waiting", json!({"how": how})).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    client.cancel(&id).await.expect("acknowledged");
    let task = client.task(&id).await;
    assert_eq!(status(&task), "cancelled", "{how}: at once, not when the body noticed");
    for member in ["result", "error", "inputRequests"] {
        assert!(task.get(member).is_none(), "{task}");
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    client.cancel(&id).await.expect("acknowledged again");
    assert_eq!(client.task(&id).await, task);
    tokio::time::sleep(Duration::from_secs(1200)).await;
    assert_eq!(client.task(&id).await, task);
    node.log.lines()
}

/// Tasks extension, "Task Cancellation": acknowledged at once, and the work stops.
#[tokio::test(start_paused = true)]
async fn a_task_in_a_sleep_is_dropped() {
    assert_eq!(cancelled("sleep").await, ["dropped"]);
}

/// A step under way is dropped with the body.
#[tokio::test(start_paused = true)]
async fn a_task_in_a_step_is_dropped() {
    assert_eq!(cancelled("step").await, ["step dropped", "dropped"]);
}

/// What a drop does not reach learns of it through the token.
#[tokio::test]
async fn blocking_work_sees_the_token() {
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<waiting>()).await;
    let id = client.start("waiting", json!({"how": "block"})).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    client.cancel(&id).await.expect("acknowledged");
    assert_eq!(status(&client.task(&id).await), "cancelled");
    for _ in 0..1000 {
        if node.log.count("token fired") == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut lines = node.log.lines();
    lines.sort();
    assert_eq!(lines, ["dropped", "token fired"]);
}

/// A parked task has no body: it is cancelled where it lies, and an answer that comes after changes nothing.
#[tokio::test(start_paused = true)]
async fn a_parked_task_is_cancelled_where_it_lies() {
    assert_eq!(cancelled("ask").await, ["dropped"]);

    let (node, client) = Node::start(Mode::Straight, |b| b.register::<waiting>()).await;
    let id = client.start("waiting", json!({"how": "ask"})).await;
    client.settled(&id).await;
    client.cancel(&id).await.expect("acknowledged");
    let task = client.task(&id).await;
    client.say(&id, "elicit-0", "too late").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(client.task(&id).await, task);
    assert_eq!(node.log.lines(), ["dropped"], "the body did not run again");
}

/// A completed task stays completed: the acknowledgement is empty and nothing changes.
#[tokio::test(start_paused = true)]
async fn cancelling_a_task_that_ended_changes_nothing() {
    let (_node, client) = Node::start(Mode::Straight, |b| b.register::<waiting>()).await;
    let id = client.start("waiting", json!({"how": "not at all"})).await;
    let ended = client.settled(&id).await;
    client.cancel(&id).await.expect("acknowledged");
    assert_eq!(client.task(&id).await, ended);
    assert_eq!(text(&ended), "done");
}

/// A cancellation that comes while the answer that resumes the task is still being acknowledged by the store stops the
/// execution that answer starts.
#[tokio::test(start_paused = true)]
async fn a_cancellation_right_behind_an_answer_stops_the_execution_it_starts() {
    /// Asks, then works for long.
    #[mcp_task]
    async fn asks_first(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
        ctx.elicit::<Word>("Well?").await?;
        let _dropped = log.on_drop("dropped");
        tokio::time::sleep(Duration::from_secs(600)).await;
        log.push("ended");
        Ok("done".to_owned())
    }
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<asks_first>()).await;
    let id = client.start("asks_first", json!({})).await;
    client.settled(&id).await;
    node.store
        .script(|script| script.update.after = Duration::from_millis(100));
    let answer = client.say(&id, "elicit-0", "yes");
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        node.store.script(|script| script.update.after = Duration::ZERO);
        client.cancel(&id).await.expect("acknowledged");
    };
    futures::join!(answer, cancel);
    assert_eq!(status(&client.task(&id).await), "cancelled");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(
        node.log.lines().is_empty() || node.log.lines() == ["dropped"],
        "still running: {:?}",
        node.log.lines()
    );
    tokio::time::sleep(Duration::from_secs(1200)).await;
    assert_eq!(node.log.count("ended"), 0, "a cancelled task worked to its end");
}

/// So does one on another node: the store tells of it before the execution is registered.
#[tokio::test(start_paused = true)]
async fn a_cancellation_on_another_node_right_behind_an_answer_stops_the_execution_it_starts() {
    /// Asks, then works for long.
    #[mcp_task]
    async fn asks_first(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
        ctx.elicit::<Word>("Well?").await?;
        log.push("resumed");
        let _dropped = log.on_drop("dropped");
        tokio::time::sleep(Duration::from_secs(600)).await;
        Ok("done".to_owned())
    }
    let pair = Pair::start(TestStore::link, |b| b.register::<asks_first>()).await;
    let id = pair.first.start("asks_first", json!({})).await;
    pair.first.settled(&id).await;
    pair.link
        .script(|script| script.update.after = Duration::from_millis(100));
    let answer = pair.first.say(&id, "elicit-0", "yes");
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        pair.second.cancel(&id).await.expect("acknowledged");
    };
    futures::join!(answer, cancel);
    // Sooner than the lease is renewed.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let lines = pair.first_log.lines();
    assert!(lines.is_empty() || lines == ["resumed", "dropped"], "{lines:?}");
    assert_eq!(status(&pair.first.task(&id).await), "cancelled");
}

/// Works for ten seconds.
#[mcp_task]
async fn plodding(ctx: ToolContext, log: State<Log>) -> String {
    let _dropped = log.on_drop("dropped");
    let (token, watcher) = (ctx.cancellation().clone(), log.clone());
    tokio::spawn(async move {
        token.cancelled().await;
        watcher.push("token fired");
    });
    tokio::time::sleep(Duration::from_secs(10)).await;
    log.push("ended");
    "done".to_owned()
}

/// Tasks extension, "Task Cancellation": `notifications/cancelled` takes back a request. The call that created a task was
/// answered long ago, and the task goes on.
#[tokio::test(start_paused = true)]
async fn taking_back_the_call_does_nothing_to_its_task() {
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<plodding>()).await;
    let created = client
        .call_taken_back("plodding", json!({}), Duration::from_secs(1))
        .await;
    let id = created
        .as_ref()
        .and_then(|task| task["taskId"].as_str())
        .expect("a task")
        .to_owned();
    assert_eq!(text(&client.settled(&id).await), "done");
    // The token fires when the run is over, and not before.
    assert_eq!(node.log.lines()[..2], ["ended", "dropped"]);
}

/// Inside a call there is nothing else to go on for: the body is dropped and the token fires.
#[tokio::test(start_paused = true)]
async fn taking_back_a_synchronous_call_stops_its_body() {
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<plodding>()).await;
    let plain = client.declaring(json!({}));
    plain
        .call_taken_back("plodding", json!({}), Duration::from_secs(1))
        .await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let mut lines = node.log.lines();
    lines.sort();
    assert_eq!(lines, ["dropped", "token fired"]);
}

/// Works for an hour.
#[mcp_task(ttl = "PT2H")]
async fn toil(ctx: ToolContext, log: State<Log>) -> String {
    let _left = log.on_drop("dropped");
    let (token, told) = (ctx.cancellation().clone(), Log::clone(&log));
    tokio::spawn(async move {
        token.cancelled().await;
        told.push("token");
    });
    log.push("started");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    "done".to_owned()
}

/// "Cancel": where the store tells of changes, a cancellation on one node stops the work on another at once, and does not
/// wait for the lease to be renewed.
#[tokio::test(start_paused = true)]
async fn a_cancellation_on_another_node_stops_the_work_at_once() {
    // With a renewal once in an hour, nothing but the news of the change can stop it in time.
    let tools = |b: TaskRuntimeBuilder| b.config(config(&[("mcp.tasks.lease", "PT3H")])).register::<toil>();
    let pair = Pair::start(TestStore::link, tools).await;
    let id = pair.begin("toil", "started").await;
    pair.second.cancel(&id).await.expect("an acknowledgement");
    for _ in 0..30_000 {
        if pair.first_log.lines().len() == 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut lines = pair.first_log.lines();
    lines.sort();
    assert_eq!(lines, ["dropped", "started", "token"]);
    assert_eq!(status(&pair.first.task(&id).await), "cancelled");
}
