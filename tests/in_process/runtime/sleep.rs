//! Tools that sleep: a short wait stays in the process, a long one needs none.

use std::time::Duration;

use mcp_tasks::prelude::*;
use mcp_tasks_core::{Idle, TaskRecord, TaskStatus};
use rmcp::model::ErrorCode;
use serde_json::json;

use crate::harness::{Client, Log, Mode, Node, REPLAY, Word, in_both_modes, keys, status, text, word};

const HOUR: u64 = 3600;

/// How often a test looks.
const LOOK: Duration = Duration::from_secs(30);

/// A little more than rounding, and far less than anything here lasts.
const SOON: Duration = Duration::from_millis(50);

/// Sleeps between two steps.
#[mcp_task(poll_interval = "PT1S", ttl = "P10D")]
async fn nap(ctx: ToolContext, log: State<Log>, seconds: u64) -> Result<String, ToolError> {
    let _dropped = log.on_drop("dropped");
    log.push("run");
    ctx.step("before", || async {
        log.push("before");
        Ok::<_, ToolError>(())
    })
    .await?;
    ctx.progress(1.0).total(2.0).message("resting").send();
    ctx.sleep(Duration::from_secs(seconds)).await?;
    log.push("awake");
    ctx.step("after", || async {
        log.push("after");
        Ok::<_, ToolError>(())
    })
    .await?;
    Ok("rested".to_owned())
}

/// As often as it is told.
#[mcp_task(ttl = "unlimited")]
async fn nap_daily(ctx: ToolContext, log: State<Log>, days: u32) -> Result<String, ToolError> {
    for _ in 0..days {
        ctx.sleep(Duration::from_secs(24 * HOUR)).await?;
        ctx.step("day", || async {
            log.push("day");
            Ok::<_, ToolError>(())
        })
        .await?;
    }
    Ok(format!("{days} days"))
}

/// Lives for an hour, and would sleep for two.
#[mcp_task(ttl = "PT1H")]
async fn oversleep(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
    log.push("run");
    ctx.sleep(Duration::from_secs(2 * HOUR)).await?;
    log.push("awake");
    Ok("too late".to_owned())
}

/// Two sleeps, of which the shorter one counts.
#[mcp_task(ttl = "P1D")]
async fn first_of_two(ctx: ToolContext) -> Result<String, ToolError> {
    tokio::select! {
        biased;
        slept = ctx.sleep(Duration::from_secs(HOUR)) => slept.map(|()| "an hour".to_owned()),
        slept = ctx.sleep(Duration::from_secs(600)) => slept.map(|()| "ten minutes".to_owned()),
    }
}

/// Waits for a sleep, and for something that only this process has.
#[mcp_task(ttl = "P1D")]
async fn beside_a_timer(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
    log.push("run");
    let timer = async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        log.push("timer");
    };
    let ((), slept) = tokio::join!(timer, ctx.sleep(Duration::from_secs(HOUR)));
    slept.map(|()| "both".to_owned())
}

/// A step of a minute beside a sleep.
#[mcp_task(ttl = "P1D")]
async fn beside_a_step(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
    let step = ctx.step("work", || async {
        log.push("step");
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok::<_, ToolError>(7)
    });
    let (worked, slept) = tokio::join!(step, ctx.sleep(Duration::from_secs(HOUR)));
    slept?;
    Ok(format!("{} after a sleep", worked?))
}

/// A sleep begins, and a question beside it.
#[mcp_task(ttl = "P1D")]
async fn sleep_and_ask(ctx: ToolContext) -> Result<String, ToolError> {
    let (slept, answer) = tokio::join!(
        ctx.sleep(Duration::from_secs(HOUR)),
        ctx.elicit::<Word>("Which word?").key("word")
    );
    slept?;
    Ok(word(answer?))
}

/// A question, and a sleep that would be over first.
#[mcp_task(ttl = "P1D")]
async fn ask_or_sleep(ctx: ToolContext) -> Result<String, ToolError> {
    tokio::select! {
        biased;
        answer = ctx.elicit::<Word>("Which word?").key("word") => Ok(word(answer?)),
        slept = ctx.sleep(Duration::from_secs(HOUR)) => slept.map(|()| "slept".to_owned()),
    }
}

/// Sleeps with what would be the answer to the call if it were done in time.
#[mcp_task(grace = "PT1S", ttl = "P1D")]
async fn nap_with_grace(ctx: ToolContext, seconds: u64) -> Result<String, ToolError> {
    ctx.sleep(Duration::from_secs(seconds)).await?;
    Ok("rested".to_owned())
}

/// Has a sleep going that it does not look at any more.
#[mcp_task(ttl = "P1D")]
async fn forgotten_sleep(ctx: ToolContext) -> Result<String, ToolError> {
    let mut forgotten = std::pin::pin!(ctx.sleep(Duration::from_secs(20)));
    tokio::select! {
        biased;
        _ = &mut forgotten => return Ok("it ended first".to_owned()),
        step = ctx.step("quick", || async { Ok::<_, ToolError>(()) }) => step?,
    }
    ctx.sleep(Duration::from_secs(HOUR)).await?;
    Ok("an hour".to_owned())
}

fn is_asleep(record: &TaskRecord) -> bool {
    record.status == TaskStatus::Working && record.execution.idle == Some(Idle::Asleep)
}

/// The record once the task sleeps.
async fn asleep(node: &Node, id: &str) -> std::sync::Arc<TaskRecord> {
    for _ in 0..10_000 {
        let record = node.store.record(id).await;
        if is_asleep(&record) {
            return record;
        }
        assert!(!record.status.is_terminal(), "{record:?}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("the task never sleeps");
}

/// The task once it works no more, looked at this often: it asks something, or has ended.
async fn rested(client: &Client, id: &str, pause: Duration) -> serde_json::Value {
    loop {
        let task = client.task(id).await;
        match status(&task) {
            "working" => tokio::time::sleep(pause).await,
            "input_required" if keys(&task) == [REPLAY] => {
                let go_on = json!({REPLAY: {"action": "decline"}});
                client.update(id, go_on).await.expect("answers are acknowledged");
            }
            _ => return task,
        }
    }
}

async fn start(
    tools: impl FnOnce(mcp_tasks::host::TaskRuntimeBuilder) -> mcp_tasks::host::TaskRuntimeBuilder,
) -> (Node, Client, Log) {
    let (node, client) = Node::start(Mode::Straight, tools).await;
    let log = node.log.clone();
    (node, client, log)
}

in_both_modes! {
    /// What was done before a sleep is not done again after it, and the sleep is as long as it was to be.
    async fn a_tool_goes_on_after_its_sleep(mode: Mode) {
        let (node, client) = Node::start(mode, |b| b.register::<nap>()).await;
        let begun = tokio::time::Instant::now();
        let id = client.start("nap", json!({"seconds": HOUR})).await;
        assert_eq!(text(&rested(&client, &id, LOOK).await), "rested");
        assert!(begun.elapsed() >= Duration::from_secs(HOUR), "{:?}", begun.elapsed());
        assert!(begun.elapsed() < Duration::from_secs(HOUR + 31), "{:?}", begun.elapsed());
        assert_eq!((node.log.count("before"), node.log.count("after")), (1, 1));
    }

    async fn sleeps_follow_each_other(mode: Mode) {
        let (node, client) = Node::start(mode, |b| b.register::<nap_daily>()).await;
        let id = client.start("nap_daily", json!({"days": 3})).await;
        assert_eq!(text(&rested(&client, &id, Duration::from_secs(600)).await), "3 days");
        assert_eq!(node.log.count("day"), 3);
    }

    async fn of_two_sleeps_the_one_that_ends_first_counts(mode: Mode) {
        let (_node, client) = Node::start(mode, |b| b.register::<first_of_two>()).await;
        let begun = tokio::time::Instant::now();
        let id = client.start("first_of_two", json!({})).await;
        assert_eq!(text(&rested(&client, &id, LOOK).await), "ten minutes");
        assert!(begun.elapsed() < Duration::from_secs(631), "{:?}", begun.elapsed());
    }

    async fn a_step_beside_a_sleep_is_done_once(mode: Mode) {
        let (node, client) = Node::start(mode, |b| b.register::<beside_a_step>()).await;
        let id = client.start("beside_a_step", json!({})).await;
        assert_eq!(text(&rested(&client, &id, LOOK).await), "7 after a sleep");
        if mode == Mode::Straight {
            assert_eq!(node.log.count("step"), 1);
        }
    }

    async fn a_question_beside_a_sleep_is_asked_at_once(mode: Mode) {
        let (_node, client) = Node::start(mode, |b| b.register::<sleep_and_ask>()).await;
        let begun = tokio::time::Instant::now();
        let id = client.start("sleep_and_ask", json!({})).await;
        assert_eq!(keys(&rested(&client, &id, LOOK).await), ["word"]);
        assert!(begun.elapsed() < Duration::from_secs(HOUR / 2));
        client.say(&id, "word", "owl").await;
        assert_eq!(text(&rested(&client, &id, LOOK).await), "owl");
        let elapsed = begun.elapsed();
        assert!(Duration::from_secs(HOUR) <= elapsed && elapsed < Duration::from_secs(HOUR + 31), "{elapsed:?}");
    }

    /// A question wins: while it is open no sleep goes by.
    async fn a_sleep_does_not_answer_a_question(mode: Mode) {
        let (_node, client) = Node::start(mode, |b| b.register::<ask_or_sleep>()).await;
        let id = client.start("ask_or_sleep", json!({})).await;
        rested(&client, &id, LOOK).await;
        tokio::time::sleep(Duration::from_secs(2 * HOUR)).await;
        assert_eq!(keys(&client.task(&id).await), ["word"]);
        client.say(&id, "word", "owl").await;
        assert_eq!(text(&rested(&client, &id, LOOK).await), "owl");
    }
}

/// Asleep a task is its record: the body is dropped, no lease is held, and a client sees it at work, as it was.
#[tokio::test(start_paused = true)]
async fn a_task_that_sleeps_needs_no_process() {
    let (node, client, log) = start(|b| b.register::<nap>()).await;
    let id = client.start("nap", json!({"seconds": HOUR})).await;
    let record = asleep(&node, &id).await;
    tokio::time::sleep(SOON).await;
    assert_eq!(log.lines(), ["run", "before", "dropped"]);
    assert_eq!(record.execution.node, None);
    let task = client.task(&id).await;
    assert_eq!(
        (status(&task), &task["statusMessage"]),
        ("working", &json!("1/2: resting"))
    );
    tokio::time::sleep(Duration::from_secs(HOUR / 2)).await;
    assert_eq!(client.task(&id).await, task, "nothing moves while it sleeps");
    assert_eq!(
        node.store.record(&id).await.version,
        record.version,
        "and nothing is written"
    );
    tokio::time::sleep(Duration::from_secs(HOUR / 2)).await;
    assert_eq!(text(&rested(&client, &id, LOOK).await), "rested");
    let woken = node
        .store
        .written()
        .into_iter()
        .find(|r| r.version == record.version + 1)
        .expect("it was woken");
    assert_eq!(
        (woken.execution.epoch, woken.execution.idle),
        (record.execution.epoch + 1, None)
    );
    assert_eq!(
        woken.last_updated_at, record.last_updated_at,
        "waking is nothing that a client sees"
    );
    assert_eq!(woken.status_message, record.status_message);
    assert_eq!(
        log.lines(),
        ["run", "before", "dropped", "run", "awake", "after", "dropped"]
    );
}

/// A wait of seconds is not worth a replay.
#[tokio::test(start_paused = true)]
async fn a_short_sleep_stays_in_the_process() {
    let (node, client, log) = start(|b| b.register::<nap>()).await;
    let id = client.start("nap", json!({"seconds": 9})).await;
    assert_eq!(text(&rested(&client, &id, LOOK).await), "rested");
    assert!(!node.store.written().iter().any(|record| is_asleep(record)));
    assert_eq!(log.lines(), ["run", "before", "awake", "after", "dropped"]);
}

/// What the body waits for besides would be lost with the process, so it stays until nothing of the kind is left.
#[tokio::test(start_paused = true)]
async fn a_tool_that_waits_for_something_else_stays_in_the_process() {
    let (node, client, log) = start(|b| b.register::<beside_a_timer>()).await;
    let id = client.start("beside_a_timer", json!({})).await;
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert!(!is_asleep(&*node.store.record(&id).await));
    assert_eq!(log.lines(), ["run"]);
    tokio::time::sleep(Duration::from_secs(HOUR + 31)).await;
    assert!(log.count("timer") >= 1);
}

/// Nor does it sleep while a step runs.
#[tokio::test(start_paused = true)]
async fn a_tool_sleeps_once_its_steps_are_done() {
    let (node, client, log) = start(|b| b.register::<beside_a_step>()).await;
    let id = client.start("beside_a_step", json!({})).await;
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert!(!is_asleep(&*node.store.record(&id).await));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(is_asleep(&*node.store.record(&id).await));
    assert_eq!(text(&rested(&client, &id, LOOK).await), "7 after a sleep");
    assert_eq!(log.count("step"), 1);
}

/// A sleep that was begun and is not polled any more wakes no task.
#[tokio::test(start_paused = true)]
async fn a_sleep_that_is_not_awaited_any_more_does_not_count() {
    let (node, client, _log) = start(|b| b.register::<forgotten_sleep>()).await;
    let id = client.start("forgotten_sleep", json!({})).await;
    let record = asleep(&node, &id).await;
    tokio::time::sleep(Duration::from_secs(HOUR - 1)).await;
    assert_eq!(node.store.record(&id).await.version, record.version);
    assert_eq!(text(&rested(&client, &id, LOOK).await), "an hour");
}

/// Tasks extension, "Task Cancellation": a sleeper is called off where it lies, and is not woken after that.
#[tokio::test(start_paused = true)]
async fn a_sleeper_is_called_off_where_it_lies() {
    let (node, client, log) = start(|b| b.register::<nap>()).await;
    let id = client.start("nap", json!({"seconds": HOUR})).await;
    asleep(&node, &id).await;
    client.cancel(&id).await.expect("an acknowledgement");
    let task = client.task(&id).await;
    assert_eq!(status(&task), "cancelled");
    tokio::time::sleep(Duration::from_secs(2 * HOUR)).await;
    assert_eq!(client.task(&id).await, task);
    assert_eq!(log.count("run"), 1);
}

/// Tasks extension, "Task Lifetime": the deadline comes first.
#[tokio::test(start_paused = true)]
async fn a_sleeper_expires() {
    let (node, client, log) = start(|b| b.register::<oversleep>()).await;
    let id = client.start("oversleep", json!({})).await;
    asleep(&node, &id).await;
    tokio::time::sleep(Duration::from_secs(HOUR + 31)).await;
    let error = client.get(&id).await.expect_err("it is gone");
    assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
    tokio::time::sleep(Duration::from_secs(2 * HOUR)).await;
    assert_eq!(log.lines(), ["run"]);
}

/// Grace: a sleep that outlasts it makes the call a task, which then sleeps like any other.
#[tokio::test(start_paused = true)]
async fn a_call_with_grace_becomes_a_task_and_sleeps() {
    let (node, client, _log) = start(|b| b.register::<nap_with_grace>()).await;
    let id = client.start("nap_with_grace", json!({"seconds": HOUR})).await;
    asleep(&node, &id).await;
    assert_eq!(text(&rested(&client, &id, LOOK).await), "rested");
}

/// A store that is out of reach when it is time does not lose the task.
#[tokio::test(start_paused = true)]
async fn a_store_that_fails_at_that_moment_is_tried_again() {
    let (node, client, _log) = start(|b| b.register::<nap>()).await;
    let id = client.start("nap", json!({"seconds": HOUR})).await;
    asleep(&node, &id).await;
    tokio::time::sleep(Duration::from_secs(HOUR - 1)).await;
    node.store.script(|script| script.down = true);
    tokio::time::sleep(Duration::from_secs(60)).await;
    node.store.script(|script| script.down = false);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(
        node.store.record(&id).await.status,
        TaskStatus::Completed,
        "without a poll"
    );
}

/// Thousands that sleep are thousands of records, and nothing of the runtime's.
#[tokio::test(start_paused = true)]
async fn many_sleepers_take_no_task_of_the_runtime_each() {
    let (node, client, log) = start(|b| b.register::<nap>()).await;
    let mut ids = Vec::new();
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    for _ in 0..500 {
        ids.push(client.start("nap", json!({"seconds": HOUR})).await);
    }
    for id in &ids {
        asleep(&node, id).await;
    }
    tokio::time::sleep(SOON).await;
    let alive = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    assert!(alive < before + 20, "{before} before, {alive} now");
    tokio::time::sleep(Duration::from_secs(HOUR)).await;
    for id in &ids {
        assert_eq!(text(&rested(&client, id, LOOK).await), "rested");
    }
    assert_eq!((log.count("before"), log.count("after")), (500, 500));
}
