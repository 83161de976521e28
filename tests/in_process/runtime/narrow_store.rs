//! A store that lets one write through at a time, as a pool of one connection does, or writers that take turns.

use std::time::Duration;

use mcp_tasks::prelude::*;
use serde_json::json;
use tokio::time::Instant;

use crate::harness::{Mode, Node, TestStore, Word, keys, status};

/// How long a write takes.
const WRITE: Duration = Duration::from_millis(300);

#[mcp_task]
async fn work_and_end(_ctx: ToolContext, millis: u64) -> String {
    tokio::time::sleep(Duration::from_millis(millis)).await;
    "done".to_owned()
}

#[mcp_task]
async fn work_and_ask(ctx: ToolContext, millis: u64) -> Result<String, ToolError> {
    tokio::time::sleep(Duration::from_millis(millis)).await;
    ctx.elicit::<Word>("Well?").key("well").await?;
    Ok("done".to_owned())
}

/// Work that ends, or asks, while its lease is being renewed, which is after a third of it, is stored at once: what the renewal
/// holds is given back first.
#[tokio::test(start_paused = true)]
async fn what_ends_in_the_middle_of_a_renewal_is_stored_at_once() {
    let store = TestStore::new(Mode::Straight);
    let narrow = store.link();
    narrow.script(|script| (script.one_at_a_time, script.update.before) = (true, WRITE));
    let node = Node::on(&store, |b| {
        b.register::<work_and_end>().register::<work_and_ask>().store(narrow)
    });
    let client = node.client().await;
    for millis in (9_600..10_600).step_by(100) {
        for (tool, expected) in [("work_and_end", "completed"), ("work_and_ask", "input_required")] {
            let begun = Instant::now();
            let id = client.start(tool, json!({"millis": millis})).await;
            let task = client.settled(&id).await;
            assert_eq!(status(&task), expected, "{millis} ms: {task}");
            let late = begun.elapsed().saturating_sub(Duration::from_millis(millis));
            // Its own write, one that was in the way, and the client's interval.
            assert!(late < Duration::from_secs(3), "{millis} ms: {late:?} late");
            if expected == "input_required" {
                assert_eq!(keys(&task), ["well"]);
                client.cancel(&id).await.expect("acknowledged");
            }
        }
    }
}
