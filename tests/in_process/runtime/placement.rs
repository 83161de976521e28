//! Which node runs a task: the one that accepts the call, or whichever takes it on.

use std::time::Duration;

use mcp_tasks::StartError;
use mcp_tasks::host::TaskRuntimeBuilder;
use mcp_tasks::prelude::*;
use mcp_tasks_core::{Idle, TaskId, TaskStatus};
use rmcp::model::ErrorCode;
use serde_json::json;

use crate::harness::{Client, Log, Mode, Node, TestStore, Word, config, keys, status, text, word};

/// A little more than the default lease.
const PAST_LEASE: Duration = Duration::from_secs(31);

/// Long enough for whatever does not wait for time.
const SOON: Duration = Duration::from_millis(500);

/// Works for a minute, wherever there is room.
#[mcp_task(placement = "any")]
async fn anywhere(log: State<Log>) -> &'static str {
    log.push("began");
    tokio::time::sleep(Duration::from_secs(60)).await;
    "done"
}

/// Asks, wherever there is room.
#[mcp_task(placement = "any")]
async fn asks_anywhere(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
    log.push("ran");
    Ok(word(ctx.elicit::<Word>("Which word?").key("word").await?))
}

/// Asks, where it was called.
#[mcp_task]
async fn asks_here(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
    log.push("ran");
    Ok(word(ctx.elicit::<Word>("Which word?").key("word").await?))
}

/// Begins in the call, and goes on wherever there is room.
#[mcp_task(defer, placement = "any")]
async fn defers(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
    ctx.step("begin", || async {
        log.push("begun");
        Ok::<_, ToolError>(())
    })
    .await?;
    ctx.defer().await?;
    log.push("went on");
    Ok("deferred".to_owned())
}

/// Would be answered at once.
#[mcp_task(grace = "PT5S")]
async fn quick(log: State<Log>) -> &'static str {
    log.push("ran");
    "quick"
}

/// Sleeps.
#[mcp_task(ttl = "P1D")]
async fn naps(ctx: ToolContext, log: State<Log>) -> Result<&'static str, ToolError> {
    log.push("ran");
    ctx.sleep(Duration::from_secs(3600)).await?;
    Ok("rested")
}

/// As configuration says.
#[mcp_task(placement = "${test.placement:local}")]
async fn configured() {}

/// As configuration says, and with grace.
#[mcp_task(placement = "${test.placement:local}", grace = "PT1S")]
async fn configured_with_grace() {}

/// Reports twenty times, over ten seconds.
#[mcp_task]
async fn reports(ctx: ToolContext) -> &'static str {
    for step in 1..=20 {
        ctx.progress(f64::from(step)).total(20.0).send();
        tokio::time::sleep(SOON).await;
    }
    "reported"
}

/// A worker pays for tasks that are left to any node, and nothing for what other nodes write to theirs.
#[tokio::test(start_paused = true)]
async fn a_worker_does_not_look_at_what_others_work_on() {
    let store = store();
    let (client, _) = node(&store, &[]).await;
    let counted = store.link();
    let operations = || counted.tally().gets + counted.tally().updates;
    let worker = Node::on(&store, |b| tools(b).store(counted.clone()));
    let _ = worker.client().await.get("nothing").await;
    tokio::time::sleep(SOON).await;
    let before = operations();
    let id = client.start("reports", json!({})).await;
    assert_eq!(text(&client.settled(&id).await), "reported");
    assert!(store.written().len() > 20, "there was much to hear of");
    assert_eq!(operations(), before);
    let unclaimed = client.start("anywhere", json!({})).await;
    assert_eq!(text(&client.settled(&unclaimed).await), "done");
    let spent = operations() - before;
    assert!(
        (1..=20).contains(&spent),
        "one claim, and the task if it won it: {spent}"
    );
}

fn tools(b: TaskRuntimeBuilder) -> TaskRuntimeBuilder {
    b.register::<anywhere>()
        .register::<asks_anywhere>()
        .register::<asks_here>()
        .register::<defers>()
        .register::<quick>()
        .register::<naps>()
        .register::<reports>()
}

/// A node on the store, with a client of it and what is done there.
async fn node(store: &TestStore, values: &[(&str, &str)]) -> (Client, Log) {
    let node = Node::on(store, |b| tools(b).config(config(values)));
    let client = node.client().await;
    // Any request starts what a node does beside requests.
    let _ = client.get("nothing").await;
    (client, node.log)
}

/// One that only speaks the protocol.
async fn front(store: &TestStore) -> (Client, Log) {
    node(store, &[("mcp.tasks.work", "false")]).await
}

fn store() -> TestStore {
    TestStore::new(Mode::Straight)
}

/// Tasks extension, "Task Creation": the answer is a task at work, whichever node is to work on it.
#[tokio::test(start_paused = true)]
async fn a_task_is_created_unclaimed_and_answered_as_working() {
    let store = store();
    let (client, log) = front(&store).await;
    let created = client.call("anywhere", json!({})).await.expect("it is accepted");
    assert_eq!(
        (&created["resultType"], &created["status"]),
        (&json!("task"), &json!("working")),
        "{created}"
    );
    let id = created["taskId"].as_str().expect("a task has an id");
    tokio::time::sleep(3 * PAST_LEASE).await;
    let record = store.record(id).await;
    assert_eq!(
        (record.execution.idle, record.version),
        (Some(Idle::Unclaimed), 1),
        "no node has touched it"
    );
    let (_worker, worked) = node(&store, &[]).await;
    // The memory store has no look for expired leases, so the owner looks.
    let before = client.task(id).await;
    let _ = _worker.task(id).await;
    tokio::time::sleep(SOON).await;
    let claimed = store.record(id).await;
    assert_eq!((claimed.execution.idle, claimed.execution.epoch), (None, 1));
    assert_eq!(
        client.task(id).await,
        before,
        "being taken on is nothing that a client sees"
    );
    assert_eq!(text(&client.settled(id).await), "done");
    assert_eq!((log.lines().len(), worked.count("began")), (0, 1));
}

/// A node alone runs what is for any node.
#[tokio::test(start_paused = true)]
async fn a_node_takes_on_what_it_accepts_itself() {
    let store = store();
    let (client, log) = node(&store, &[]).await;
    let id = client.start("asks_anywhere", json!({})).await;
    assert_eq!(keys(&client.settled(&id).await), ["word"]);
    client.say(&id, "word", "owl").await;
    assert_eq!(text(&client.settled(&id).await), "owl");
    assert_eq!(log.count("ran"), 2);
}

/// Where the store tells of it a worker takes a task on at once, and goes on with it once it is answered, wherever that is.
#[tokio::test(start_paused = true)]
async fn a_worker_hears_of_tasks_and_of_answers() {
    let store = store();
    let ((client, spoke), (_worker, worked)) = (front(&store).await, node(&store, &[]).await);
    for tool in ["asks_anywhere", "asks_here"] {
        let begun = tokio::time::Instant::now();
        let id = client.start(tool, json!({})).await;
        assert_eq!(keys(&client.settled(&id).await), ["word"]);
        client.say(&id, "word", "owl").await;
        assert_eq!(text(&client.settled(&id).await), "owl");
        assert!(begun.elapsed() < SOON, "{tool}: {:?}", begun.elapsed());
    }
    assert_eq!((spoke.lines().len(), worked.count("ran")), (0, 4));
}

/// However many workers hear of it.
#[tokio::test(start_paused = true)]
async fn each_task_is_taken_on_once() {
    const TASKS: usize = 60;
    let store = store();
    let (client, _) = front(&store).await;
    let mut workers = Vec::new();
    for _ in 0..4 {
        workers.push(node(&store, &[]).await);
    }
    let mut ids = Vec::new();
    for _ in 0..TASKS {
        ids.push(client.start("anywhere", json!({})).await);
    }
    for id in &ids {
        assert_eq!(text(&client.settled(id).await), "done");
        assert_eq!(store.record(id).await.execution.epoch, 1);
    }
    let began: usize = workers.iter().map(|(_, log)| log.count("began")).sum();
    assert_eq!(began, TASKS);
}

/// `mcp.tasks.quota.running`: a worker claims no more than it has places for, leaves the rest, and comes back for it.
#[tokio::test(start_paused = true)]
async fn a_worker_claims_no_more_than_it_has_places_for() {
    let store = store();
    let (client, _) = front(&store).await;
    let (_worker, worked) = node(&store, &[("mcp.tasks.quota.running", "2")]).await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(client.start("anywhere", json!({})).await);
    }
    tokio::time::sleep(SOON).await;
    assert_eq!(worked.count("began"), 2);
    let mut unclaimed = 0;
    for id in &ids {
        unclaimed += usize::from(store.record(id).await.execution.idle.is_some());
    }
    assert_eq!(unclaimed, 3, "they are there for other nodes");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(worked.count("began"), 4);
    for id in &ids {
        assert_eq!(text(&client.settled(id).await), "done");
    }
    assert_eq!(worked.count("began"), 5);
}

/// Nor does a full node refuse what others can take on.
#[tokio::test(start_paused = true)]
async fn a_full_node_accepts_what_is_for_any_node() {
    let store = store();
    let (client, log) = node(&store, &[("mcp.tasks.quota.running", "1")]).await;
    let first = client.start("anywhere", json!({})).await;
    let second = client.start("anywhere", json!({})).await;
    tokio::time::sleep(SOON).await;
    assert_eq!(log.count("began"), 1);
    assert_eq!(text(&client.settled(&first).await), "done");
    assert_eq!(text(&client.settled(&second).await), "done");
}

/// Tasks extension, "Task Cancellation" and "Task Lifetime", of a task that no node has taken on.
#[tokio::test(start_paused = true)]
async fn an_unclaimed_task_is_cancelled_and_expires_where_it_lies() {
    let store = store();
    let (client, _) = front(&store).await;
    let (called_off, left) = (
        client.start("anywhere", json!({})).await,
        client.start("anywhere", json!({})).await,
    );
    client.cancel(&called_off).await.expect("an acknowledgement");
    let (_worker, worked) = node(&store, &[]).await;
    assert_eq!(status(&_worker.task(&called_off).await), "cancelled");
    tokio::time::sleep(Duration::from_secs(3601)).await;
    assert_eq!(
        client.get(&left).await.expect_err("it is gone").code,
        ErrorCode::INVALID_PARAMS
    );
    assert!(worked.lines().is_empty());
}

/// A task whose tool no node has stays, and is found once there is one.
#[tokio::test(start_paused = true)]
async fn a_task_waits_for_a_node_that_has_its_tool() {
    let store = store();
    let (client, _) = front(&store).await;
    let id = client.start("anywhere", json!({})).await;
    let other = Node::on(&store, |b| b.register::<configured>());
    let other = other.client().await;
    for _ in 0..10 {
        tokio::time::sleep(PAST_LEASE).await;
        assert_eq!(status(&other.task(&id).await), "working");
    }
    assert_eq!(store.record(&id).await.version, 1);
}

/// What is found by looking is found behind what is for others.
#[tokio::test(start_paused = true)]
async fn a_look_goes_past_what_is_for_others() {
    let store = store();
    let (client, _) = front(&store).await;
    let link = store.scanned_link();
    // More than one look takes on.
    for _ in 0..150 {
        link.know(&TaskId::new(&client.start("anywhere", json!({})).await));
    }
    let id = client.start("asks_anywhere", json!({})).await;
    link.know(&TaskId::new(&id));
    let worker = Node::on(&store, |b| b.register::<asks_anywhere>().store(link.clone()));
    let worker = worker.client().await;
    let _ = worker.get("nothing").await;
    tokio::time::sleep(3 * PAST_LEASE).await;
    assert_eq!(keys(&client.settled(&id).await), ["word"]);
}

/// `defer`: the call begins where it arrives, and its task goes on wherever there is room.
#[tokio::test(start_paused = true)]
async fn a_deferred_call_goes_on_elsewhere() {
    let store = store();
    let ((client, spoke), (_worker, worked)) = (front(&store).await, node(&store, &[]).await);
    let id = client.start("defers", json!({})).await;
    assert_eq!(text(&client.settled(&id).await), "deferred");
    assert_eq!(spoke.lines(), ["begun"]);
    assert_eq!(worked.lines(), ["went on"]);
}

/// A node that does not work begins nothing, not even for a grace.
#[tokio::test(start_paused = true)]
async fn a_node_that_does_not_work_gives_no_grace() {
    let store = store();
    let ((client, spoke), (_worker, worked)) = (front(&store).await, node(&store, &[]).await);
    let id = client.start("quick", json!({})).await;
    assert_eq!(text(&client.settled(&id).await), "quick");
    assert_eq!((spoke.lines().len(), worked.count("ran")), (0, 1));
}

/// Nor does it wake what sleeps.
#[tokio::test(start_paused = true)]
async fn a_node_that_does_not_work_wakes_no_task() {
    let store = store();
    let link = store.scanned_link();
    let first = Node::on(&store, |b| tools(b).store(link.clone()));
    let first = first.client().await;
    let id = first.start("naps", json!({})).await;
    while store.record(&id).await.execution.idle != Some(Idle::Asleep) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    link.script(|script| script.down = true);
    let (client, log) = front(&store).await;
    tokio::time::sleep(Duration::from_secs(3700)).await;
    assert_eq!(status(&client.task(&id).await), "working");
    let record = store.record(&id).await;
    assert_eq!(
        (record.status, record.execution.idle),
        (TaskStatus::Working, Some(Idle::Asleep))
    );
    assert!(log.lines().is_empty());
    let (worker, worked) = node(&store, &[]).await;
    worker.task(&id).await;
    assert_eq!(text(&worker.settled(&id).await), "rested");
    assert_eq!(worked.count("ran"), 1);
}

fn start(
    values: &[(&str, &str)],
    tools: impl FnOnce(TaskRuntimeBuilder) -> TaskRuntimeBuilder,
) -> Result<(), StartError> {
    let builder = TaskRuntime::builder().without_inventory().config(config(values));
    tools(builder).build().map(drop)
}

/// What configuration says is checked when the server starts.
#[test]
fn a_placement_that_cannot_be_stops_the_start() {
    for value in ["local", "any"] {
        start(&[("test.placement", value)], |b| b.register::<configured>()).expect(value);
    }
    let error = start(&[("test.placement", "there")], |b| b.register::<configured>()).expect_err("there is no such");
    for word in ["configured", "placement", "there", "`any` or `local`"] {
        assert!(error.to_string().contains(word), "{error}");
    }
    start(&[], |b| b.register::<configured_with_grace>()).expect("grace is for a node that runs what it accepts");
    let error = start(&[("test.placement", "any")], |b| b.register::<configured_with_grace>()).expect_err("both");
    assert!(error.to_string().contains("grace"), "{error}");
}

/// A node that leaves tasks to others needs a store that they see.
#[test]
fn a_node_that_does_not_work_needs_a_store_that_others_see() {
    let error = start(&[("mcp.tasks.work", "false")], |b| b).expect_err("no node would ever work");
    assert!(error.to_string().contains("mcp.tasks.store.url"), "{error}");
}
