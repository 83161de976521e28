//! A node that stops: what it does not finish is for the others, and at once.

use std::time::Duration;

use mcp_tasks::host::{Clock, TaskRuntimeBuilder};
use mcp_tasks::prelude::*;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::harness::{Log, Pair, TestStore, Word, code, config, keys, status, text, word};

/// How long a node is given to stop.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long the work of the tools here takes.
const WORK: Duration = Duration::from_secs(600);

async fn work(log: &Log) -> String {
    let _stopped = log.on_drop("stopped");
    log.push("began");
    sleep(WORK).await;
    log.push("done");
    "done".to_owned()
}

/// Works for ten minutes.
#[mcp_task]
async fn toil(log: State<Log>) -> String {
    work(&log).await
}

/// As `toil`, and may be run again.
#[mcp_task(on_crash = "replay")]
async fn toil_again(log: State<Log>) -> String {
    work(&log).await
}

/// Asks, and works.
#[mcp_task]
async fn asks_first(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
    let answer = word(ctx.elicit::<Word>("Shall I?").await?);
    log.push(answer);
    Ok(work(&log).await)
}

fn tools(b: TaskRuntimeBuilder) -> TaskRuntimeBuilder {
    b.register::<toil>().register::<toil_again>().register::<asks_first>()
}

/// What may be run again is run again on another node as soon as its client polls there, long before the lease would have ended.
#[tokio::test(start_paused = true)]
async fn what_a_stopping_node_leaves_goes_on_elsewhere_at_once() {
    let scene = Pair::start(TestStore::link, tools).await;
    let id = scene.begin("toil_again", "began").await;
    assert_eq!(scene.node.shutdown(PATIENCE).await, 1);
    assert_eq!(scene.first_log.lines(), ["began", "stopped"]);
    let stopped = Instant::now();
    assert_eq!(status(&scene.second.task(&id).await), "working");
    sleep(Duration::from_millis(10)).await;
    assert_eq!(scene.second_log.lines(), ["began"]);
    assert!(stopped.elapsed() < Duration::from_secs(1));
    sleep(WORK).await;
    assert_eq!(text(&scene.second.settled(&id).await), "done");
    assert_eq!(scene.first_log.lines(), ["began", "stopped"]);
}

/// What may not be run again fails as soon as its client polls.
#[tokio::test(start_paused = true)]
async fn what_may_not_be_run_again_fails_at_once() {
    let scene = Pair::start(TestStore::link, tools).await;
    let id = scene.begin("toil", "began").await;
    assert_eq!(scene.node.shutdown(PATIENCE).await, 1);
    let task = scene.second.task(&id).await;
    assert_eq!((status(&task), code(&task)), ("failed", -32603), "{task}");
    assert!(scene.second_log.lines().is_empty());
}

/// The node that stops does not take its own task over, also when a client polls there.
#[tokio::test(start_paused = true)]
async fn a_stopping_node_takes_nothing_over() {
    let scene = Pair::start(TestStore::link, tools).await;
    let id = scene.begin("toil_again", "began").await;
    scene.node.shutdown(PATIENCE).await;
    sleep(2 * PATIENCE).await;
    assert_eq!(status(&scene.first.task(&id).await), "working");
    assert_eq!(scene.first_log.lines(), ["began", "stopped"]);
}

/// A store that is out of reach, or does not answer at all, does not keep the node from stopping.
#[tokio::test(start_paused = true)]
async fn a_dead_store_keeps_no_node_from_stopping() {
    for mute in [false, true] {
        let scene = Pair::start(TestStore::link, tools).await;
        for _ in 0..20 {
            scene.begin("toil_again", "began").await;
        }
        scene.link.script(|script| {
            script.mute = mute;
            script.update.fail = u32::MAX;
        });
        let began = Instant::now();
        assert_eq!(scene.node.shutdown(Duration::ZERO).await, 20);
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        assert_eq!(scene.first_log.count("stopped"), 20);
    }
}

/// A task whose client called it off is cancelled, also while the node stops.
#[tokio::test(start_paused = true)]
async fn a_cancelled_task_stays_cancelled() {
    let scene = Pair::start(TestStore::link, tools).await;
    let id = scene.begin("toil_again", "began").await;
    let (_, cancelled) = tokio::join!(scene.node.shutdown(Duration::ZERO), scene.second.cancel(&id));
    cancelled.expect("an acknowledgement");
    assert_eq!(status(&scene.second.task(&id).await), "cancelled");
    assert!(scene.store.record(&id).await.execution.lease_until.is_none());
}

/// A task that was answered and waits for a place when its node stops has done nothing yet: another node runs it, also if
/// its tool's work may not be done twice.
#[tokio::test(start_paused = true)]
async fn what_waits_for_a_place_is_run_elsewhere() {
    let one = || config(&[("mcp.tasks.quota.running", "1")]);
    let scene = Pair::start(TestStore::link, |b| tools(b).config(one())).await;
    let asks = scene.first.start("asks_first", json!({})).await;
    assert_eq!(keys(&scene.first.settled(&asks).await), ["elicit-0"]);
    scene.begin("toil", "began").await;
    scene.first.say(&asks, "elicit-0", "yes").await;
    assert_eq!(scene.node.shutdown(PATIENCE).await, 2);
    assert_eq!(status(&scene.second.task(&asks).await), "working");
    sleep(WORK + PATIENCE).await;
    assert_eq!(text(&scene.second.settled(&asks).await), "done");
    assert_eq!(scene.first_log.count("yes"), 0);
    assert_eq!(scene.second_log.lines(), ["yes", "began", "done", "stopped"]);
    assert!(scene.store.clock().now() > scene.store.record(&asks).await.created_at);
}
