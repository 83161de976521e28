//! Writes whose outcome is not known in time: what they started, or should not have started.

use std::time::Duration;

use mcp_tasks::prelude::*;
use serde_json::json;
use tokio::time::sleep;

use crate::harness::{Log, Mode, Node, TestStore, Word, keys, status, text, word};

const LEASE: Duration = Duration::from_secs(30);

/// Works for a minute, and may be run again.
#[mcp_task(on_crash = "replay")]
async fn order(log: State<Log>) -> String {
    log.push("ordered");
    sleep(Duration::from_secs(60)).await;
    "done".to_owned()
}

/// Asks, and works for a minute.
#[mcp_task]
async fn asks(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
    let answer = word(ctx.elicit::<Word>("Which?").await?);
    log.push(answer.clone());
    sleep(Duration::from_secs(60)).await;
    Ok(answer)
}

/// Asks inside the call, and goes on as a task.
#[mcp_task(defer)]
async fn defers(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
    let answer = word(ctx.elicit::<Word>("Which?").await?);
    ctx.defer().await?;
    log.push(answer.clone());
    sleep(Duration::from_secs(60)).await;
    Ok(answer)
}

/// A call whose task was stored although its client was told that it failed leaves nothing that any node would run, also
/// where the record appears late.
#[tokio::test(start_paused = true)]
async fn a_call_that_was_told_to_have_failed_is_never_run() {
    for late in [0, 1_990, 10_000, 25_000].map(Duration::from_millis) {
        let store = TestStore::new(Mode::Straight);
        let (way, other_way, log) = (store.scanned_link(), store.scanned_link(), Log::default());
        let tools = |b: mcp_tasks::host::TaskRuntimeBuilder| b.register::<order>().state(log.clone());
        let first = Node::on(&store, |b| tools(b).store(way.clone())).client().await;
        let second = Node::on(&store, |b| tools(b).store(other_way.clone()));
        let second = second.client().await;
        // Any request starts what a node does beside requests.
        second.get("nothing").await.expect_err("there is no such task");

        way.script(|script| script.puts_creations_aside = true);
        let lands = async {
            // Sent by then.
            sleep(Duration::from_millis(1)).await;
            other_way.know(&way.known()[0]);
            sleep(late).await;
            way.land().await.expect("the id is free");
        };
        let (answer, ()) = tokio::join!(first.call("order", json!({})), lands);
        let error = answer.expect_err("it is not known");
        assert_eq!(error.code.0, -32603, "{error}");
        assert!(error.message.contains("try again"), "{error}");
        sleep(3 * LEASE).await;
        assert!(log.lines().is_empty(), "it was not run, {late:?}");
        assert!(store.find(&way.known()[0]).await.is_none(), "nothing is left, {late:?}");

        // The call made again is another task, which stays.
        way.script(|script| script.puts_creations_aside = false);
        let id = first.start("order", json!({})).await;
        sleep(3 * LEASE).await;
        assert_eq!(text(&first.settled(&id).await), "done");
        assert_eq!(log.lines(), ["ordered"]);
    }
}

/// A store that is out of reach until after the lease is asked again until the record is gone.
#[tokio::test(start_paused = true)]
async fn an_orphan_is_removed_once_the_store_is_back() {
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<order>()).await;
    node.store.script(|script| script.create.lose = u32::MAX);
    client.call("order", json!({})).await.expect_err("it is not known");
    node.store.script(|script| {
        script.create.lose = 0;
        script.down = true;
    });
    sleep(LEASE).await;
    node.store.script(|script| script.down = false);
    sleep(LEASE).await;
    assert!(node.store.is_empty(), "nothing is left");
    assert!(node.log.lines().is_empty());
}

/// An answer that was taken in although its client was told that it failed resumes the task, and the client need not come
/// again.
#[tokio::test(start_paused = true)]
async fn an_answer_that_was_acknowledged_late_resumes_its_task() {
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<asks>()).await;
    let id = client.start("asks", json!({})).await;
    assert_eq!(keys(&client.settled(&id).await), ["elicit-0"]);
    node.store.script(|script| script.update.lose = u32::MAX);
    let answer = json!({"elicit-0": {"action": "accept", "content": {"word": "this"}}});
    let error = client.update(&id, answer.clone()).await.expect_err("it is not known");
    assert_eq!(error.code.0, -32603, "{error}");
    node.store.script(|script| script.update.lose = 0);
    client.update(&id, answer).await.expect("an acknowledgement");
    sleep(3 * LEASE).await;
    assert_eq!(text(&client.settled(&id).await), "this");
    assert_eq!(node.log.lines(), ["this"], "once");
}

/// One that was not taken in changes nothing, and can be given again.
#[tokio::test(start_paused = true)]
async fn an_answer_that_did_not_arrive_can_be_given_again() {
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<asks>()).await;
    let id = client.start("asks", json!({})).await;
    client.settled(&id).await;
    node.store.script(|script| script.update.fail = u32::MAX);
    let answer = json!({"elicit-0": {"action": "accept", "content": {"word": "this"}}});
    client.update(&id, answer).await.expect_err("it did not arrive");
    node.store.script(|script| script.update.fail = 0);
    sleep(3 * LEASE).await;
    assert_eq!(status(&client.task(&id).await), "input_required");
    client.say(&id, "elicit-0", "that").await;
    sleep(3 * LEASE).await;
    assert_eq!(text(&client.settled(&id).await), "that");
    assert_eq!(node.log.lines(), ["that"]);
}

/// The last round of a call names its task: sent again it finds the one that was stored unheard, which runs, once.
#[tokio::test(start_paused = true)]
async fn a_round_sent_again_finds_the_task_that_was_stored_unheard() {
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<defers>()).await;
    let none = json!({});
    let round = client.begin("defers", &none).await.asked();
    let answer = json!({"elicit-0": {"action": "accept", "content": {"word": "this"}}});
    let again = || client.retry("defers", &none, &round, answer.clone());
    node.store.script(|script| script.create.lose = u32::MAX);
    again().await.done().expect_err("it is not known");
    node.store.script(|script| script.create.lose = 0);
    let id = again().await.task();
    sleep(3 * LEASE).await;
    assert_eq!(text(&client.settled(&id).await), "this");
    assert_eq!(node.log.lines(), ["this"], "once");
    assert_eq!(again().await.task(), id, "the same task");
}
