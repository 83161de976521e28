//! Tools that sleep, on several nodes with one store.

use std::time::Duration;

use mcp_tasks::prelude::*;
use mcp_tasks_core::{Idle, TaskStatus};
use serde_json::json;

use crate::harness::{Client, Log, Mode, Node, TestStore, code, status, text};

const HOUR: u64 = 3600;

/// Past the default lease, and so past the next scan.
const PAST_LEASE: Duration = Duration::from_secs(31);

/// Sleeps for an hour between two steps.
#[mcp_task(name = "nap", ttl = "P1D")]
async fn nap(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
    for step in ["before", "after"] {
        ctx.step(step, || async {
            log.push(step);
            Ok::<_, ToolError>(())
        })
        .await?;
        if step == "before" {
            ctx.sleep(Duration::from_secs(HOUR)).await?;
        }
    }
    Ok("rested".to_owned())
}

mod other_version {
    use super::*;

    /// Another version of it.
    #[mcp_task(name = "nap", version = "2", ttl = "P1D")]
    pub(super) async fn nap(ctx: ToolContext) -> Result<String, ToolError> {
        ctx.sleep(Duration::from_secs(HOUR)).await?;
        Ok("rested otherwise".to_owned())
    }
}

/// Something else.
#[mcp_task]
async fn something_else() -> &'static str {
    "done"
}

/// A task that one node put to sleep, whose way to the store is cut then, as if it had died.
struct Left {
    store: TestStore,
    _first: Client,
    id: String,
}

impl Left {
    async fn asleep() -> Self {
        let store = TestStore::new(Mode::Straight);
        let link = store.scanned_link();
        let node = Node::on(&store, |b| b.register::<nap>().store(link.clone()));
        let first = node.client().await;
        let id = first.start("nap", json!({})).await;
        while store.record(&id).await.execution.idle != Some(Idle::Asleep) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        link.script(|script| script.down = true);
        Self {
            store,
            _first: first,
            id,
        }
    }

    /// Another node, whose scan finds the task, and what is done there.
    async fn other(
        &self,
        tools: impl FnOnce(mcp_tasks::host::TaskRuntimeBuilder) -> mcp_tasks::host::TaskRuntimeBuilder,
    ) -> (Client, Log) {
        let link = self.store.scanned_link();
        link.know(&mcp_tasks_core::TaskId::new(&self.id));
        let node = Node::on(&self.store, |b| tools(b).store(link));
        let client = node.client().await;
        // Any request starts what a node does beside requests.
        let _ = client.get("nothing").await;
        (client, node.log)
    }
}

/// A sleeper is no work that was lost: without `on_crash = "replay"` too it goes on on another node, whose scan finds it
/// when it is time.
#[tokio::test(start_paused = true)]
async fn a_sleeper_whose_node_is_gone_is_woken_by_the_scan_of_another() {
    let left = Left::asleep().await;
    let (client, log) = left.other(|b| b.register::<nap>()).await;
    tokio::time::sleep(Duration::from_secs(HOUR - 60)).await;
    assert_eq!(status(&client.task(&left.id).await), "working");
    assert!(log.lines().is_empty(), "it is left alone until then");
    tokio::time::sleep(Duration::from_secs(60) + PAST_LEASE).await;
    assert_eq!(
        left.store.record(&left.id).await.status,
        TaskStatus::Completed,
        "without a poll"
    );
    assert_eq!(log.lines(), ["after"]);
}

/// A poll by its owner wakes it too, and sooner.
#[tokio::test(start_paused = true)]
async fn a_poll_wakes_a_sleeper_whose_time_has_come() {
    let left = Left::asleep().await;
    // The memory store has no scan.
    let node = Node::on(&left.store, |b| b.register::<nap>());
    let client = node.client().await;
    tokio::time::sleep(Duration::from_secs(HOUR)).await;
    assert_eq!(status(&client.task(&left.id).await), "working");
    assert_eq!(text(&client.settled(&left.id).await), "rested");
    assert_eq!(node.log.lines(), ["after"]);
}

/// However many nodes meet it, one execution wakes.
#[tokio::test(start_paused = true)]
async fn of_nodes_that_come_by_at_the_same_time_one_wakes_it() {
    let left = Left::asleep().await;
    let mut nodes = Vec::new();
    for _ in 0..4 {
        nodes.push(left.other(|b| b.register::<nap>()).await);
    }
    tokio::time::sleep(Duration::from_secs(HOUR)).await;
    let polls = nodes
        .iter()
        .flat_map(|(client, _)| (0..8).map(|_| client.task(&left.id)));
    futures::future::join_all(polls).await;
    assert_eq!(text(&nodes[0].0.settled(&left.id).await), "rested");
    let done: Vec<String> = nodes.iter().flat_map(|(_, log)| log.lines()).collect();
    assert_eq!(done, ["after"]);
    assert_eq!(left.store.record(&left.id).await.version, {
        let written = left.store.written();
        let slept = written
            .iter()
            .find(|record| record.execution.idle.is_some())
            .expect("it slept");
        // The claim, the step, the end.
        slept.version + 3
    });
}

/// A node with another version of the tool fails it, as one that was asked something and resumed there.
#[tokio::test(start_paused = true)]
async fn a_sleeper_of_another_version_fails_before_it_runs() {
    let left = Left::asleep().await;
    let (client, _) = left.other(|b| b.register::<other_version::nap>()).await;
    tokio::time::sleep(Duration::from_secs(HOUR)).await;
    client.task(&left.id).await;
    let task = client.settled(&left.id).await;
    assert_eq!(code(&task), -32602);
    assert!(
        task["statusMessage"]
            .as_str()
            .is_some_and(|words| words.contains("version")),
        "{task}"
    );
}

/// A node without the tool leaves it to one that has it.
#[tokio::test(start_paused = true)]
async fn a_node_without_the_tool_leaves_a_sleeper_alone() {
    let left = Left::asleep().await;
    let (client, _) = left.other(|b| b.register::<something_else>()).await;
    tokio::time::sleep(Duration::from_secs(HOUR + 600)).await;
    assert_eq!(status(&client.task(&left.id).await), "working");
    let (client, log) = left.other(|b| b.register::<nap>()).await;
    tokio::time::sleep(PAST_LEASE).await;
    assert_eq!(status(&client.task(&left.id).await), "completed");
    assert_eq!(log.lines(), ["after"]);
}
