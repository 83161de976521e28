//! Several nodes on one store: what becomes of a task whose node is gone, cut off, or frozen.

use std::time::Duration;

use mcp_tasks::prelude::*;
use serde_json::json;

use crate::harness::{Log, Mode, Node, Pair, TestStore, code, status, text};

/// A little more than the default lease.
const PAST_LEASE: Duration = Duration::from_secs(31);

/// How long the work of the tools here takes.
const WORK: Duration = Duration::from_secs(600);

/// Works for ten minutes after a step.
#[mcp_task]
async fn dig(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
    let _stopped = log.on_drop("stopped");
    work(&ctx, &log).await
}

/// As `dig`, and may be run again.
#[mcp_task(on_crash = "replay")]
async fn dig_again(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
    let _stopped = log.on_drop("stopped");
    work(&ctx, &log).await
}

async fn work(ctx: &ToolContext, log: &Log) -> Result<String, ToolError> {
    let depth: u32 = ctx
        .step("measure", || async {
            log.push("measured");
            Ok::<_, ToolError>(7)
        })
        .await?;
    log.push("digging");
    tokio::time::sleep(WORK).await;
    log.push("dug");
    Ok(format!("{depth} deep"))
}

/// The first of them has a way that can be cut.
async fn pair() -> Pair {
    Pair::start(TestStore::scanned_link, |b| b.register::<dig>().register::<dig_again>()).await
}

/// A lease is renewed for as long as the work takes, and no other node takes the task over.
#[tokio::test(start_paused = true)]
async fn a_task_that_works_on_stays_with_its_node() {
    let pair = pair().await;
    let id = pair.begin("dig", "digging").await;
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_secs(59)).await;
        assert_eq!(status(&pair.second.task(&id).await), "working");
    }
    assert_eq!(text(&pair.second.settled(&id).await), "7 deep");
    assert!(pair.second_log.lines().is_empty());
}

/// The owner's poll on another node ends a task whose node is gone, with words a person can read and no detail.
#[tokio::test(start_paused = true)]
async fn a_task_whose_node_is_gone_fails_when_its_owner_looks() {
    let pair = pair().await;
    let id = pair.begin("dig", "digging").await;
    pair.link.script(|script| script.down = true);
    assert_eq!(status(&pair.second.task(&id).await), "working", "its lease is not over");
    tokio::time::sleep(PAST_LEASE).await;
    let task = pair.second.task(&id).await;
    assert_eq!((status(&task), code(&task)), ("failed", -32603), "{task}");
    assert!(
        task["statusMessage"]
            .as_str()
            .is_some_and(|words| words.contains("stopped")),
        "{task}"
    );
    assert_eq!(task["error"]["message"], task["statusMessage"], "{task}");
    assert!(pair.second_log.lines().is_empty(), "the default is not to run it again");
}

/// A node that was frozen or cut off past its lease stops its work, and can change nothing any more.
#[tokio::test(start_paused = true)]
async fn a_node_that_comes_back_after_its_lease_changes_nothing() {
    let pair = pair().await;
    let id = pair.begin("dig", "digging").await;
    pair.link.script(|script| script.down = true);
    tokio::time::sleep(PAST_LEASE).await;
    let task = pair.second.task(&id).await;
    pair.link.script(|script| script.down = false);
    tokio::time::sleep(Duration::from_secs(1200)).await;
    assert_eq!(pair.second.task(&id).await, task);
    assert_eq!(pair.first_log.lines(), ["measured", "digging", "stopped"]);
}

/// `on_crash = "replay"`: another node runs the body again, and does not do again what is in the ledger.
#[tokio::test(start_paused = true)]
async fn a_task_that_may_be_replayed_goes_on_elsewhere() {
    let pair = pair().await;
    let id = pair.begin("dig_again", "digging").await;
    pair.link.script(|script| script.down = true);
    tokio::time::sleep(PAST_LEASE).await;
    assert_eq!(status(&pair.second.task(&id).await), "working");
    pair.link.script(|script| script.down = false);
    tokio::time::sleep(WORK).await;
    assert_eq!(text(&pair.second.settled(&id).await), "7 deep");
    assert_eq!(pair.second_log.lines(), ["digging", "dug", "stopped"]);
    assert_eq!(
        pair.first_log.lines(),
        ["measured", "digging", "stopped"],
        "the first execution is fenced off"
    );
}

/// Polls that come at the same time start one execution.
#[tokio::test(start_paused = true)]
async fn a_task_is_taken_over_once() {
    let pair = pair().await;
    let id = pair.begin("dig_again", "digging").await;
    pair.link.script(|script| script.down = true);
    tokio::time::sleep(PAST_LEASE).await;
    let polls = (0..16).map(|_| pair.second.task(&id));
    futures::future::join_all(polls).await;
    tokio::time::sleep(WORK).await;
    pair.second.settled(&id).await;
    assert_eq!(pair.second_log.count("digging"), 1);
}

/// Without a poll the recovery scan of any node finds the task.
#[tokio::test(start_paused = true)]
async fn a_scan_finds_tasks_whose_node_is_gone() {
    let store = TestStore::new(Mode::Straight);
    let link = store.scanned_link();
    let first = Node::on(&store, |b| b.register::<dig>().store(link.clone()));
    let client = first.client().await;
    let id = client.start("dig", json!({})).await;
    link.script(|script| script.down = true);
    let other_link = store.scanned_link();
    other_link.know(&mcp_tasks_core::TaskId::new(&id));
    let second = Node::on(&store, |b| b.register::<dig>().store(other_link));
    // Any request starts what a node does beside requests.
    let other = second.client().await.start("dig", json!({})).await;
    tokio::time::sleep(2 * PAST_LEASE).await;
    assert!(
        store.record(&id).await.status.is_terminal(),
        "no client polled, and it is ended all the same"
    );
    assert!(!store.record(&other).await.status.is_terminal());
}

/// Tasks extension, "Task Cancellation": a cancel on one node stops the work on another, within a lease.
#[tokio::test(start_paused = true)]
async fn a_cancel_on_one_node_stops_the_work_on_another() {
    let pair = pair().await;
    let id = pair.begin("dig", "digging").await;
    pair.second.cancel(&id).await.expect("an acknowledgement");
    assert_eq!(status(&pair.first.task(&id).await), "cancelled");
    tokio::time::sleep(PAST_LEASE).await;
    assert_eq!(pair.first_log.lines(), ["measured", "digging", "stopped"]);
}

/// Two nodes, of which the way of the first to the store takes a moment, as to a server.
async fn far_and_near() -> Pair {
    let pair = Pair::start(TestStore::link, |b| b.register::<dig_again>()).await;
    pair.link
        .script(|script| script.update.before = Duration::from_millis(100));
    pair
}

/// A process that stood still past its lease goes on if no other node took its task over.
#[tokio::test(start_paused = true)]
async fn a_node_that_stood_still_goes_on_if_no_node_took_its_task_over() {
    let nodes = far_and_near().await;
    let id = nodes.begin("dig_again", "digging").await;
    let (captured, _guard) = crate::runtime::tracing_events::capture();
    tokio::time::advance(2 * PAST_LEASE).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(status(&nodes.second.task(&id).await), "working");
    tokio::time::sleep(WORK).await;
    assert_eq!(text(&nodes.second.settled(&id).await), "7 deep");
    assert_eq!(nodes.first_log.lines(), ["measured", "digging", "dug", "stopped"]);
    assert!(nodes.second_log.lines().is_empty());
    let log = captured.lines().join("\n");
    assert!(log.contains("ended while this process did not run"), "{log}");
    assert!(!log.contains("could not be reached"), "{log}");
}

/// One whose task was taken over meanwhile stops its work and says why, which is not that the store was out of reach.
#[tokio::test(start_paused = true)]
async fn a_node_that_stood_still_says_that_another_took_over() {
    let nodes = far_and_near().await;
    let id = nodes.begin("dig_again", "digging").await;
    let (captured, _guard) = crate::runtime::tracing_events::capture();
    tokio::time::advance(2 * PAST_LEASE).await;
    assert_eq!(status(&nodes.second.task(&id).await), "working");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(nodes.second_log.lines(), ["digging"]);
    assert_eq!(nodes.first_log.lines(), ["measured", "digging", "stopped"]);
    let log = captured.lines().join("\n");
    assert!(log.contains("ended while this process did not run"), "{log}");
    assert!(log.contains("went on elsewhere"), "{log}");
    assert!(!log.contains("could not be reached"), "{log}");
    tokio::time::sleep(WORK).await;
    assert_eq!(text(&nodes.second.settled(&id).await), "7 deep");
}

/// A node that cannot renew its lease stops its work when the lease is over, not at the next renewal that would be due.
#[tokio::test(start_paused = true)]
async fn work_ends_with_its_lease() {
    let pair = pair().await;
    pair.begin("dig_again", "digging").await;
    pair.link.script(|script| script.down = true);
    tokio::time::sleep(PAST_LEASE).await;
    assert_eq!(pair.first_log.lines(), ["measured", "digging", "stopped"]);
}

/// A node without the tool leaves the task to those that have it, as there are while a deployment is renewed. Only when
/// none of them came by it fails.
#[tokio::test(start_paused = true)]
async fn a_task_is_left_to_a_node_that_has_its_tool() {
    for comes in [true, false] {
        let pair = pair().await;
        let without = Node::on(&pair.store, |b| b.register::<dig>());
        let without = without.client().await;
        let id = pair.begin("dig_again", "digging").await;
        pair.link.script(|script| script.down = true);
        tokio::time::sleep(PAST_LEASE).await;
        for _ in 0..2 {
            assert_eq!(status(&without.task(&id).await), "working");
            tokio::time::sleep(PAST_LEASE).await;
        }
        if comes {
            pair.second.task(&id).await;
        }
        tokio::time::sleep(2 * PAST_LEASE).await;
        let expected = if comes { "working" } else { "failed" };
        assert_eq!(status(&without.task(&id).await), expected);
    }
}
