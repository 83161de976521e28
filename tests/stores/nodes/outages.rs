//! What is between the nodes and their tasks fails in the middle of traffic.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use mcp_tasks_tests::patience::until;
use serde_json::{Value, json};

use crate::nodes::database::Database;
use crate::nodes::node::{Node, SHORT_LEASE, words, yes};

const TASKS: usize = 40;

/// The result of a request, repeated on one node after the other until one of them gives it. The node that is asked answers, or
/// is gone; a refusal says that it is the server that fails.
async fn insist(nodes: &[Node], method: &str, params: Value) -> Value {
    let turn = AtomicUsize::new(0);
    until(method, async || {
        let node = &nodes[turn.fetch_add(1, Ordering::Relaxed) % nodes.len()];
        match node.try_ask(method, params.clone()).await {
            Some(Ok(result)) => Some(result),
            Some(Err(error)) => {
                assert_eq!(error["code"], -32603, "what is refused says why: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                None
            }
            None => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                None
            }
        }
    })
    .await
}

async fn created(nodes: &[Node]) -> String {
    let call = json!({"name": "ask_again", "arguments": {}});
    let result = insist(nodes, "tools/call", call).await;
    result["taskId"].as_str().expect("a task has an id").to_owned()
}

/// Takes the tasks to their ends on any node. Each is there, and ends as it should.
async fn finished(nodes: &[Node], ids: &[String]) {
    let ends = ids.iter().map(|id| async move {
        let get = json!({"taskId": id});
        loop {
            let task = insist(nodes, "tasks/get", get.clone()).await;
            match task["status"].as_str() {
                Some("input_required") => drop(insist(nodes, "tasks/update", yes(id)).await),
                Some("working") => tokio::time::sleep(Duration::from_millis(50)).await,
                _ => {
                    assert_eq!(task["status"], "completed", "{task}");
                    assert_eq!(words(&task), "yes");
                    return;
                }
            }
        }
    });
    join_all(ends).await;
}

/// The database server is killed with `kill -9` and started again in the middle of traffic. Where there is no server, the
/// nodes are. What was acknowledged is there afterwards, and goes on; what is refused says so; nothing hangs.
pub(crate) async fn what_was_acknowledged_is_there_after_an_outage(database: &mut Database) {
    let (first, second) = Node::two(database, SHORT_LEASE).await;
    let mut nodes = vec![first, second];
    let mut ids = join_all((0..TASKS).map(|_| created(&nodes))).await;
    match database {
        Database::File(_) => {
            // They are at work on these when they die.
            ids.extend(join_all((0..TASKS).map(|_| created(&nodes))).await);
            for node in &mut nodes {
                node.kill().await;
            }
            let (first, second) = Node::two(database, SHORT_LEASE).await;
            nodes = vec![first, second];
        }
        Database::Server(server) => {
            let traffic = join_all((0..TASKS).map(|_| created(&nodes)));
            let outage = async {
                server.kill();
                // A while in which nothing can be stored, and the traffic goes on.
                tokio::time::sleep(Duration::from_millis(500)).await;
                tokio::task::block_in_place(|| server.start());
            };
            let (during, ()) = tokio::join!(traffic, outage);
            ids.extend(during);
        }
    }
    finished(&nodes, &ids).await;
}
