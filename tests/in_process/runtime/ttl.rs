//! Time to live of a task that runs.

use std::time::Duration;

use mcp_tasks::prelude::*;
use mcp_tasks_core::Timestamp;
use rmcp::model::ErrorCode;
use serde_json::json;

use crate::harness::{Log, Mode, Node, status, text};

async fn sleep_ms(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// Works for five seconds and lives for two.
#[mcp_task(ttl = "PT2S", poll_interval = "PT0.5S")]
async fn overlong(ctx: ToolContext, log: State<Log>) -> String {
    let _dropped = log.on_drop("dropped");
    for step in 1..=10 {
        ctx.progress(f64::from(step)).total(10.0).send();
        sleep_ms(500).await;
    }
    log.push("ended");
    "too late".to_owned()
}

/// The same, with the deadline moved after one second.
#[mcp_task(ttl = "PT2S", poll_interval = "PT0.5S")]
async fn extended(ctx: ToolContext, by_ms: u64) -> Result<String, ToolError> {
    sleep_ms(1000).await;
    ctx.extend_ttl(Duration::from_millis(by_ms)).await?;
    sleep_ms(4000).await;
    Ok("in time".to_owned())
}

/// Tasks extension, "Task Lifetime": a task is there until its deadline, creation plus ttl, and no poll shows it working
/// after that.
#[tokio::test(start_paused = true)]
async fn a_task_past_its_deadline_is_gone_and_its_body_stopped() {
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<overlong>()).await;
    let id = client.start("overlong", json!({})).await;
    let created = node.store.record(&id).await.created_at;
    let mut seen = 0;
    loop {
        match client.get(&id).await {
            Ok(task) => {
                let now = mcp_tasks::host::Clock::now(&*node.store.clock());
                assert!(now <= created.saturating_add(Duration::from_secs(2)), "{task} at {now}");
                assert_eq!((status(&task), &task["ttlMs"]), ("working", &json!(2000)));
                seen += 1;
            }
            Err(error) => {
                assert_eq!(error.code, ErrorCode::INVALID_PARAMS, "{error}");
                break;
            }
        }
        sleep_ms(100).await;
    }
    assert!(seen >= 20, "it was there until its deadline, seen {seen} times");
    sleep_ms(10).await;
    assert_eq!(node.log.lines(), ["dropped"]);
    sleep_ms(5000).await;
    assert_eq!(node.log.lines(), ["dropped"]);
    assert!(client.get(&id).await.is_err());
}

/// `ctx.extend_ttl` moves the deadline where clients see it.
#[tokio::test(start_paused = true)]
async fn the_author_can_move_the_deadline_visibly() {
    let (_node, client) = Node::start(Mode::Straight, |b| b.register::<extended>()).await;
    let id = client.start("extended", json!({"by_ms": 10_000})).await;
    let before = client.task(&id).await;
    assert_eq!(before["ttlMs"], 2000);
    sleep_ms(1500).await;
    let after = client.task(&id).await;
    assert_eq!(after["ttlMs"], 11_000);
    let stamp = |task: &serde_json::Value| task["lastUpdatedAt"].as_str().map(str::parse::<Timestamp>);
    assert!(stamp(&after).expect("there").expect("an instant") > stamp(&before).expect("there").expect("an instant"));
    sleep_ms(4000).await;
    assert_eq!(text(&client.task(&id).await), "in time");
    sleep_ms(5400).await;
    assert!(client.get(&id).await.is_ok(), "10.9 seconds after its creation");
    sleep_ms(200).await;
    assert!(client.get(&id).await.is_err(), "11.1 seconds after its creation");
}

/// An extension is "at least so long from now": it never takes time away.
#[tokio::test(start_paused = true)]
async fn an_extension_never_shortens() {
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<extended>()).await;
    let id = client.start("extended", json!({"by_ms": 100})).await;
    sleep_ms(1500).await;
    assert_eq!(client.task(&id).await["ttlMs"], 2000);
    assert!(node.store.written().is_empty(), "nothing changed, nothing was written");
}

/// A task that never expires has a `ttlMs` of null, and extending it does nothing.
#[tokio::test(start_paused = true)]
async fn an_unlimited_task_outlives_everything() {
    /// Works for two days.
    #[mcp_task(ttl = "unlimited")]
    async fn patient(ctx: ToolContext) -> Result<String, ToolError> {
        ctx.extend_ttl(Duration::from_secs(1)).await?;
        tokio::time::sleep(Duration::from_secs(48 * 60 * 60)).await;
        Ok("done".to_owned())
    }
    let (_node, client) = Node::start(Mode::Straight, |b| b.register::<patient>()).await;
    let id = client.start("patient", json!({})).await;
    tokio::time::sleep(Duration::from_secs(49 * 60 * 60)).await;
    let task = client.task(&id).await;
    assert_eq!((text(&task), &task["ttlMs"]), ("done", &json!(null)));
}
