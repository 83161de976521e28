//! Quotas: how many executions a node runs at a time (`mcp.tasks.quota.running`), and how many open tasks a caller has
//! (`mcp.tasks.quota.open-per-principal`).

use std::time::Duration;

use futures::future::join_all;
use mcp_tasks::host::TaskRuntimeBuilder;
use mcp_tasks::prelude::*;
use serde_json::json;
use tokio::time::sleep;

use crate::harness::{Dice, Log, Mode, Node, Storm, TestStore, Word, code, config, keys, status, text, word};

const WORK: Duration = Duration::from_secs(120);

/// A little more than the default lease.
const PAST_LEASE: Duration = Duration::from_secs(31);

async fn work(log: &Log) -> String {
    let _over = log.on_drop("over");
    log.push("began");
    sleep(WORK).await;
    "done".to_owned()
}

/// Works for two minutes, and may be run again.
#[mcp_task(on_crash = "replay")]
async fn toil(log: State<Log>) -> String {
    work(&log).await
}

/// Works for two minutes, and may not be run again.
#[mcp_task]
async fn toil_once(log: State<Log>) -> String {
    work(&log).await
}

/// Asks, and works for two minutes.
#[mcp_task]
async fn asks(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
    let answer = word(ctx.elicit::<Word>("Which?").await?);
    work(&log).await;
    Ok(answer)
}

/// Lives for two seconds, and then for ten more.
#[mcp_task(ttl = "PT2S", poll_interval = "PT0.5S")]
async fn extends(ctx: ToolContext) -> Result<(), ToolError> {
    sleep(Duration::from_secs(1)).await;
    ctx.extend_ttl(Duration::from_secs(10)).await?;
    sleep(WORK).await;
    Ok(())
}

fn limited(key: &str, limit: u64, b: TaskRuntimeBuilder) -> TaskRuntimeBuilder {
    b.config(config(&[(key, &limit.to_string())]))
        .register::<toil>()
        .register::<toil_once>()
        .register::<asks>()
        .register::<extends>()
}

/// A node that runs as many at a time.
fn at_most(limit: u64, b: TaskRuntimeBuilder) -> TaskRuntimeBuilder {
    limited("mcp.tasks.quota.running", limit, b)
}

/// A node whose callers have one open task each.
fn one_open(b: TaskRuntimeBuilder) -> TaskRuntimeBuilder {
    limited("mcp.tasks.quota.open-per-principal", 1, b)
}

/// How many bodies run now.
fn running(log: &Log) -> usize {
    log.count("began") - log.count("over")
}

/// Calls that come at the same moment do not overshoot the limit, however long the store takes; what is refused or fails
/// gives its place back.
#[tokio::test(start_paused = true)]
async fn calls_at_the_same_moment_do_not_overshoot() {
    let (node, client) = Node::start(Mode::Straight, |b| at_most(3, b)).await;
    let log = &node.log;
    node.store.script(|script| {
        let mut slow = Storm::new(1);
        slow.delayed = 1_000;
        slow.longest = Duration::from_millis(500);
        script.storm = Some(slow);
    });
    let answers = join_all((0..20).map(|_| client.call("toil", json!({})))).await;
    let (taken, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert_eq!(taken.len(), 3);
    for error in refused {
        assert_eq!(error.expect_err("no place").code.0, -31001);
    }
    sleep(Duration::from_secs(10)).await;
    assert_eq!(running(log), 3);
    sleep(WORK).await;
    assert_eq!(running(log), 0);

    node.store.script(|script| {
        script.storm = None;
        script.down = true;
    });
    for _ in 0..4 {
        let error = client.call("toil", json!({})).await.expect_err("the store is down");
        assert_eq!(error.code.0, -32603, "its place was given back: {error}");
    }
    node.store.script(|script| script.down = false);
    for _ in 0..3 {
        client.start("toil", json!({})).await;
    }
    let error = client.call("toil", json!({})).await.expect_err("no place");
    assert_eq!(error.code.0, -31001);
}

/// An answer is taken in whatever runs: the execution waits for its place, its task stays this node's, and those that wait
/// have their turn before new calls.
#[tokio::test(start_paused = true)]
async fn a_resumed_task_waits_for_a_place_and_is_not_lost() {
    let (node, client) = Node::start(Mode::Straight, |b| at_most(1, b)).await;
    let other_node = Node::on(&node.store, |b| at_most(9, b));
    let (log, other) = (&node.log, other_node.client().await);
    let mut parked = Vec::new();
    for _ in 0..3 {
        let id = client.start("asks", json!({})).await;
        assert_eq!(keys(&client.settled(&id).await), ["elicit-0"]);
        parked.push(id);
    }
    client.start("toil_once", json!({})).await;
    for id in &parked {
        client.say(id, "elicit-0", "this").await;
    }
    for round in 0..4 {
        for _ in 0..3 {
            assert!(running(log) <= 1);
            for id in &parked {
                assert_ne!(status(&other.task(id).await), "failed", "its lease is renewed");
            }
            let error = client.call("toil", json!({})).await.expect_err("no place");
            assert_eq!(error.code.0, -31001, "round {round}");
            sleep(PAST_LEASE).await;
        }
        sleep(WORK - 3 * PAST_LEASE).await;
    }
    sleep(Duration::from_secs(1)).await;
    for id in &parked {
        assert_eq!(text(&client.settled(id).await), "this");
    }
    assert_eq!((log.count("began"), running(log)), (4, 0));
    assert!(other_node.log.lines().is_empty());
}

/// A task that waits for a place can be called off, and expires, like any other.
#[tokio::test(start_paused = true)]
async fn a_task_that_waits_for_a_place_can_be_cancelled() {
    let (node, client) = Node::start(Mode::Straight, |b| at_most(1, b)).await;
    let log = &node.log;
    let id = client.start("asks", json!({})).await;
    client.settled(&id).await;
    client.start("toil_once", json!({})).await;
    client.say(&id, "elicit-0", "this").await;
    client.cancel(&id).await.expect("an acknowledgement");
    assert_eq!(status(&client.task(&id).await), "cancelled");
    sleep(WORK + Duration::from_secs(1)).await;
    assert_eq!(log.lines(), ["began", "over"]);
    client.start("toil", json!({})).await;
}

/// A node whose places are taken leaves an abandoned task alone; one that has room, or the same a little later, runs it.
/// To end one that may not be run again takes no place.
#[tokio::test(start_paused = true)]
async fn a_full_node_takes_nothing_over() {
    let store = TestStore::new(Mode::Straight);
    let way = store.link();
    let gone = Node::on(&store, |b| at_most(9, b).store(way.clone()));
    let gone = gone.client().await;
    let again = gone.start("toil", json!({})).await;
    let once = gone.start("toil_once", json!({})).await;
    sleep(Duration::from_millis(10)).await;
    way.script(|script| (script.down, script.update.fail) = (true, u32::MAX));
    let node = Node::on(&store, |b| at_most(1, b));
    let (log, node) = (node.log.clone(), node.client().await);
    sleep(PAST_LEASE).await;
    node.start("toil", json!({})).await;
    for _ in 0..3 {
        assert_eq!(status(&node.task(&again).await), "working");
        assert_eq!(running(&log), 1);
    }
    assert_eq!(code(&node.task(&once).await), -32603);
    sleep(WORK).await;
    assert_eq!(status(&node.task(&again).await), "working");
    sleep(Duration::from_millis(10)).await;
    assert_eq!((log.count("began"), running(&log)), (2, 1));
    sleep(WORK).await;
    assert_eq!(text(&node.settled(&again).await), "done");
}

/// However calls, answers and cancellations fall, there is never one execution too many, and no place is lost.
#[tokio::test(start_paused = true)]
async fn places_are_neither_lost_nor_doubled() {
    let (node, client) = Node::start(Mode::Straight, |b| at_most(4, b)).await;
    let log = &node.log;
    let mut dice = Dice::new(7);
    let mut ids = Vec::new();
    for _ in 0..400 {
        match dice.below(4) {
            0 => ids.extend(client.call("asks", json!({})).await.ok()),
            1 => ids.extend(client.call("toil", json!({})).await.ok()),
            2 if !ids.is_empty() => {
                let at = dice.place(ids.len());
                let id = ids[at]["taskId"].as_str().expect("a task has an id").to_owned();
                let answer = json!({"elicit-0": {"action": "decline"}});
                client.update(&id, answer).await.expect("an acknowledgement");
            }
            3 if !ids.is_empty() => {
                let at = dice.place(ids.len());
                let id = ids.swap_remove(at)["taskId"]
                    .as_str()
                    .expect("a task has an id")
                    .to_owned();
                client.cancel(&id).await.expect("an acknowledgement");
            }
            _ => {}
        }
        assert!(running(log) <= 4);
        sleep(Duration::from_millis(dice.below(20_000).into())).await;
    }
    sleep(100 * WORK).await;
    assert_eq!(running(log), 0);
    for _ in 0..4 {
        client.start("toil", json!({})).await;
    }
}

/// A task whose deadline was moved is open until then.
#[tokio::test(start_paused = true)]
async fn an_extended_task_counts_until_its_new_deadline() {
    let (_node, client) = Node::start(Mode::Straight, one_open).await;
    let id = client.start("extends", json!({})).await;
    for _ in 0..10 {
        let error = client.call("extends", json!({})).await.expect_err("one is open");
        assert_eq!(error.code.0, -31001);
        sleep(Duration::from_secs(1)).await;
    }
    sleep(Duration::from_secs(2)).await;
    client.get(&id).await.expect_err("it has expired");
    client.start("extends", json!({})).await;
}

/// The same for one that another node goes on with, as far as its client looks at it here; and one that ended there counts no
/// more.
#[tokio::test(start_paused = true)]
async fn a_look_at_a_task_corrects_what_it_counts() {
    let (node, client) = Node::start(Mode::Straight, one_open).await;
    let other = Node::on(&node.store, one_open).client().await;
    let id = client.start("asks", json!({})).await;
    client.settled(&id).await;
    other.cancel(&id).await.expect("an acknowledgement");
    assert_eq!(status(&client.task(&id).await), "cancelled");
    client.start("asks", json!({})).await;
}
