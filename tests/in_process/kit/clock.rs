//! The clock of the kit in a whole runtime.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mcp_tasks::__private::Direct;
use mcp_tasks::Config;
use mcp_tasks::host::Clock;
use mcp_tasks::prelude::*;
use mcp_tasks::store::MemoryStore;
use mcp_tasks::testing::TestClock;
use mcp_tasks_core::TaskStatus;
use serde_json::json;

/// Sleeps and says so.
#[mcp_task(ttl = "PT2H")]
async fn nap(ctx: ToolContext, hours: u64) -> Result<String, ToolError> {
    let before = ctx.now().await?;
    ctx.sleep(Duration::from_secs(hours * 3600)).await?;
    let slept = ctx.now().await?.duration_since(before)?;
    Ok(format!("{} h", slept.as_secs() / 3600))
}

fn direct(clock: &TestClock) -> Direct {
    let none: [(&str, &str); 0] = [];
    let runtime = TaskRuntime::builder()
        .config(Config::builder().environment(none).without_file().build().unwrap())
        .without_inventory()
        .register::<nap>()
        .store(Arc::new(MemoryStore::new()))
        .clock(Arc::new(clock.clone()))
        .build()
        .unwrap();
    Direct::new(runtime)
}

async fn settled() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn tools_sleep_until_the_clock_is_set() {
    let clock = TestClock::new();
    let direct = direct(&clock);
    let task = direct.create("nap", &json!({"hours": 1})).await.unwrap();
    settled().await;
    clock.advance(Duration::from_secs(3599));
    settled().await;
    assert_eq!(direct.get(&task.task_id).await.unwrap().status, TaskStatus::Working);
    clock.advance(Duration::from_secs(1));
    settled().await;
    let record = direct.get(&task.task_id).await.unwrap();
    assert_eq!(record.status, TaskStatus::Completed);
    assert!(record.result.as_ref().unwrap().get().contains("1 h"));
}

#[tokio::test]
async fn tasks_expire_when_the_clock_is_set() {
    let clock = TestClock::new();
    let direct = direct(&clock);
    let task = direct.create("nap", &json!({"hours": 3})).await.unwrap();
    settled().await;
    clock.advance(Duration::from_secs(7200));
    settled().await;
    assert!(direct.get(&task.task_id).await.is_ok(), "at the deadline it is there");
    clock.advance(Duration::from_millis(1));
    settled().await;
    assert!(direct.get(&task.task_id).await.is_err());
}

#[test]
fn it_shows_what_it_was_set_to() {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    let clock = TestClock::at(time);
    let shared = clock.clone();
    assert_eq!(shared.time(), time);
    clock.set(time - Duration::from_secs(10));
    clock.advance(Duration::from_secs(3));
    assert_eq!(shared.time(), time - Duration::from_secs(7));
    assert_eq!(SystemTime::from(shared.now()), shared.time());
    assert_eq!(TestClock::new().time(), TestClock::default().time());
}
