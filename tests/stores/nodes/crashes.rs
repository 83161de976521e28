//! Processes that are killed or frozen.

use serde_json::{Value, json};

use crate::nodes::database::Database;
use crate::nodes::node::{LONG_LEASE, Node, SHORT_LEASE, words};

/// A task that waits for an answer needs no process: killed with `kill -9` while it is parked, its node is not missed.
pub(crate) async fn a_parked_task_needs_no_process(database: &mut Database) {
    let (mut first, second) = Node::two(database, LONG_LEASE).await;
    let id = first.create("ask", json!({})).await;
    let asked = first.reaches(&id, "input_required").await;
    first.kill().await;
    assert_eq!(second.task(&id).await, asked);
    second.answer(&id).await;
    assert_eq!(words(&second.reaches(&id, "completed").await), "yes");
}

fn is_lost(task: &Value) {
    assert_eq!(task["status"], "failed", "{task}");
    assert_eq!(task["error"]["code"], -32603, "{task}");
    let words = task["statusMessage"].as_str().unwrap_or_default();
    assert!(words.contains("stopped"), "words a person can read: {task}");
}

/// A task whose process is killed while it works fails as soon as its lease is over and a client polls it, and not before.
pub(crate) async fn the_work_of_a_killed_process_fails(database: &mut Database) {
    let (mut first, second) = Node::two(database, LONG_LEASE).await;
    let id = first.create("wait", json!({"gate": "never"})).await;
    first.noted("wait started").await;
    first.kill().await;
    assert_eq!(second.task(&id).await["status"], "working", "its lease is not over");
    second.pass_the_lease().await;
    let lost = second.task(&id).await;
    is_lost(&lost);
    assert_eq!(second.count("wait started").await, 0, "it is not run again");
    assert_eq!(second.task(&id).await, lost);
}

/// No task stays `working` after its process died: without a poll the other node finds it by itself.
pub(crate) async fn the_work_of_a_killed_process_fails_without_a_poll(database: &mut Database) {
    let (mut first, second) = Node::two(database, SHORT_LEASE).await;
    // The first request starts what a node does beside requests.
    assert_eq!(second.count("wait started").await, 0);
    let id = first.create("wait", json!({"gate": "never"})).await;
    first.noted("wait started").await;
    first.kill().await;
    second.logged("a task whose node is gone has failed").await;
    is_lost(&second.task(&id).await);
}

/// With `on_crash = "replay"` the task goes on elsewhere, and what is in its ledger is not done again.
pub(crate) async fn the_work_of_a_killed_process_is_replayed_if_its_tool_says_so(database: &mut Database) {
    let (mut first, second) = Node::two(database, LONG_LEASE).await;
    let id = first.create("measure_and_wait", json!({"gate": "g"})).await;
    first.noted("measure_and_wait waits").await;
    first.kill().await;
    second.open("g").await;
    assert_eq!(second.task(&id).await["status"], "working", "its lease is not over");
    assert_eq!(second.count("measure_and_wait started").await, 0);
    second.pass_the_lease().await;
    let done = second.reaches(&id, "completed").await;
    assert_eq!(words(&done), format!("7 by process {}", second.pid()));
    assert_eq!(second.count("measured").await, 0, "the step is in the ledger");
}

/// A process that is told to stop gives its leases back: what it does not finish goes on elsewhere, though the clock stands
/// still and no lease would end.
pub(crate) async fn a_process_that_is_told_to_stop_leaves_its_work_to_the_others(database: &mut Database) {
    let (mut first, second) = Node::two(database, LONG_LEASE).await;
    let id = first.create("measure_and_wait", json!({"gate": "g"})).await;
    let once = first.create("wait", json!({"gate": "never"})).await;
    first.noted("measure_and_wait waits").await;
    first.noted("wait started").await;
    first.terminate().await;
    assert_eq!(second.task(&id).await["status"], "working");
    is_lost(&second.task(&once).await);
    second.open("g").await;
    let done = second.reaches(&id, "completed").await;
    assert_eq!(words(&done), format!("7 by process {}", second.pid()));
    assert_eq!(second.count("measured").await, 0, "the step is in the ledger");
}

/// A process that was frozen past its lease, and believes that it still holds it, can change nothing any more.
pub(crate) async fn a_process_frozen_past_its_lease_changes_nothing_any_more(database: &mut Database) {
    let (first, second) = Node::two(database, LONG_LEASE).await;
    let id = first.create("wait", json!({"gate": "g"})).await;
    first.noted("wait started").await;
    first.signal("STOP").await;
    second.pass_the_lease().await;
    let lost = second.task(&id).await;
    is_lost(&lost);
    first.signal("CONT").await;
    first.open("g").await;
    first.left("wait").await;
    // Its end was to be written by then, or is on its way; what takes longer than another task does not come any more.
    let other = first.create("optional", json!({"text": "a", "times": 1})).await;
    first.reaches(&other, "completed").await;
    assert_eq!(first.task(&id).await, lost);
    assert_eq!(second.task(&id).await, lost);
}

/// Nor can it undo what another node made of the task since.
pub(crate) async fn a_process_frozen_past_its_lease_does_not_undo_a_replay(database: &mut Database) {
    let (first, second) = Node::two(database, LONG_LEASE).await;
    let id = first.create("measure_and_wait", json!({"gate": "g"})).await;
    first.noted("measure_and_wait waits").await;
    first.signal("STOP").await;
    second.pass_the_lease().await;
    assert_eq!(second.task(&id).await["status"], "working");
    second.noted("measure_and_wait waits").await;
    first.signal("CONT").await;
    // The frozen one comes to its end first, and it does not count.
    first.open("g").await;
    first.left("measure_and_wait").await;
    let other = first.create("optional", json!({"text": "a", "times": 1})).await;
    first.reaches(&other, "completed").await;
    assert_eq!(
        second.task(&id).await["status"],
        "working",
        "the execution that counts still waits"
    );
    second.open("g").await;
    let done = second.reaches(&id, "completed").await;
    assert_eq!(words(&done), format!("7 by process {}", second.pid()));
    assert_eq!(first.task(&id).await, done);
}
