//! Who comes first when a task ends, and what comes after.

use std::sync::Arc;
use std::time::Duration;

use mcp_tasks::prelude::*;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::harness::{Log, Mode, Node, code, status, text};

#[derive(Clone)]
struct Gate(Arc<Semaphore>);

/// Ends when it is let through.
#[mcp_task]
async fn gated(State(gate): State<Gate>) -> Result<String, ToolError> {
    gate.0.acquire().await?.forget();
    Ok("done".to_owned())
}

/// Tasks extension, "Task Status": a terminal status is final. Of a cancellation and a completion at the same time one
/// wins, and nothing that comes later changes anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_cancel_and_complete_at_once_one_wins_for_good() {
    let gate = Gate(Arc::new(Semaphore::new(0)));
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<gated>().state(gate.clone())).await;
    let mut wins = [0, 0];
    for round in 0..1000 {
        let id = client.start("gated", json!({})).await;
        let opener = gate.clone();
        let open = tokio::spawn(async move {
            // Which of the two is ahead differs from round to round.
            for _ in 0..round % 7 {
                tokio::task::yield_now().await;
            }
            opener.0.add_permits(1);
        });
        client.cancel(&id).await.expect("a cancellation is acknowledged");
        open.await.expect("opening does not fail");
        let ended = client.task(&id).await;
        let version = node.store.record(&id).await.version;
        match status(&ended) {
            "cancelled" => wins[0] += 1,
            "completed" => wins[1] += 1,
            other => panic!("{other} after a cancellation was acknowledged"),
        }
        // Late writes of every kind.
        client.cancel(&id).await.expect("acknowledged");
        let late = json!({"elicit-0": {"action": "decline"}});
        client.update(&id, late).await.expect("acknowledged");
        if round % 100 == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(client.task(&id).await, ended);
        assert_eq!(node.store.record(&id).await.version, version);
        // A body that was stopped before it took its permit leaves it.
        gate.0.forget_permits(gate.0.available_permits());
    }
    assert_eq!(wins[0] + wins[1], 1000);
}

/// A body that goes on after its task was cancelled, in blocking code, changes nothing with what it still does.
#[tokio::test]
async fn what_a_cancelled_body_still_does_changes_nothing() {
    /// Reports from a thread that is never stopped.
    #[mcp_task]
    async fn stubborn(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
        let worker = ctx.clone();
        let log = log.clone();
        let work = tokio::task::spawn_blocking(move || {
            while !worker.cancellation().is_cancelled() {
                std::thread::sleep(Duration::from_millis(1));
            }
            worker.progress(99.0).message("still here").send();
            log.push("token fired");
        });
        work.await?;
        Ok("done".to_owned())
    }
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<stubborn>()).await;
    let id = client.start("stubborn", json!({})).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    client.cancel(&id).await.expect("acknowledged");
    let cancelled = client.task(&id).await;
    let version = node.store.record(&id).await.version;
    while node.log.count("token fired") == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(client.task(&id).await, cancelled);
    assert_eq!(node.store.record(&id).await.version, version);
}

/// Tasks extension, "Task Polling": the status, the result and the words come as one.
#[tokio::test(start_paused = true)]
async fn a_poll_sees_the_end_whole_or_not_at_all() {
    /// Reports, and ends with the last report.
    #[mcp_task]
    async fn reporting(ctx: ToolContext, fail: bool) -> Result<String, ToolError> {
        for done in 1..=3 {
            tokio::time::sleep(Duration::from_millis(200)).await;
            ctx.progress(f64::from(done)).total(3.0).message("counted").send();
        }
        if fail {
            return Err(ToolError::protocol(rmcp::ErrorData::invalid_params("no", None)));
        }
        Ok("done".to_owned())
    }
    for fail in [false, true] {
        let (node, client) = Node::start(Mode::Straight, |b| b.register::<reporting>()).await;
        node.store.script(|script| {
            script.update.before = Duration::from_millis(20);
            script.update.after = Duration::from_millis(20);
        });
        let id = client.start("reporting", json!({"fail": fail})).await;
        let mut seen: Vec<Value> = Vec::new();
        loop {
            let task = client.task(&id).await;
            match status(&task) {
                "working" => {
                    assert_ne!(
                        task["statusMessage"], "3/3: counted",
                        "the last report comes with the end"
                    );
                    assert!(task.get("result").is_none() && task.get("error").is_none(), "{task}");
                }
                "failed" => {
                    assert!(fail && task.get("result").is_none(), "{task}");
                    assert_eq!((code(&task), &task["statusMessage"]), (-32602, &json!("no")));
                    break;
                }
                _ => {
                    assert!(!fail && task.get("error").is_none(), "{task}");
                    assert_eq!((text(&task), &task["statusMessage"]), ("done", &json!("3/3: counted")));
                    break;
                }
            }
            if seen.last() != Some(&task) {
                seen.push(task);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let messages: Vec<_> = seen.iter().map(|task| task["statusMessage"].clone()).collect();
        assert_eq!(messages, [json!(null), json!("1/3: counted"), json!("2/3: counted")]);
    }
}
