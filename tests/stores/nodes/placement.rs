//! Nodes that speak the protocol, and nodes that work.

use futures::future::join_all;
use serde_json::json;

use crate::nodes::database::Database;
use crate::nodes::node::{LONG_LEASE, Node, SHORT_LEASE, words};

/// Created, answered and read on the node that only speaks the protocol, a task is worked on by the other.
pub(crate) async fn one_node_speaks_and_another_works(database: &mut Database) {
    let (front, worker) = Node::front_and_worker(database, LONG_LEASE).await;
    let id = front.create("ask_anywhere", json!({})).await;
    let asked = front.reaches(&id, "input_required").await;
    assert!(asked["inputRequests"]["go"].is_object(), "{asked}");
    assert_eq!(
        (front.count("ask_anywhere").await, worker.count("ask_anywhere").await),
        (0, 1)
    );
    front.answer(&id).await;
    let done = front.reaches(&id, "completed").await;
    assert_eq!(words(&done), format!("yes by process {}", worker.pid()));
    assert_eq!(worker.task(&id).await, done);
    assert_eq!(
        (front.count("ask_anywhere").await, worker.count("ask_anywhere").await),
        (0, 2)
    );
}

/// A node that does not work hands over what would be its own, too.
pub(crate) async fn whatever_a_node_that_does_not_work_accepts_is_handed_over(database: &mut Database) {
    let (front, worker) = Node::front_and_worker(database, SHORT_LEASE).await;
    let id = front.create("ask", json!({})).await;
    front.reaches(&id, "input_required").await;
    front.answer(&id).await;
    assert_eq!(words(&front.reaches(&id, "completed").await), "yes");
    assert_eq!((front.count("ask").await, worker.count("ask").await), (0, 2));
}

/// Of several workers one takes a task on, however many tasks there are.
pub(crate) async fn each_task_is_taken_on_once(database: &mut Database) {
    const TASKS: usize = 24;
    let (front, first) = Node::front_and_worker(database, LONG_LEASE).await;
    let second = Node::start("second", database, LONG_LEASE).await;
    let create = |_| front.create("wait_anywhere", json!({"gate": "g"}));
    let ids = join_all((0..TASKS).map(create)).await;
    first.open("g").await;
    second.open("g").await;
    for id in &ids {
        let done = front.reaches(id, "completed").await;
        assert!(words(&done).starts_with("passed g in process"), "{done}");
    }
    let started = "wait_anywhere started";
    assert_eq!(first.count(started).await + second.count(started).await, TASKS);
    assert_eq!(front.count(started).await, 0);
}

/// A worker that is killed in the middle is replaced by another one, as the tool says.
pub(crate) async fn the_work_of_a_killed_worker_goes_on(database: &mut Database) {
    let (front, mut worker) = Node::front_and_worker(database, SHORT_LEASE).await;
    let again = front.create("measure_anywhere", json!({"gate": "g"})).await;
    let once = front.create("wait_anywhere", json!({"gate": "g"})).await;
    worker.noted("measure_anywhere waits").await;
    worker.noted("wait_anywhere started").await;
    worker.kill().await;
    let next = Node::start("next", database, SHORT_LEASE).await;
    next.open("g").await;
    let done = front.reaches(&again, "completed").await;
    assert_eq!(words(&done), format!("7 by process {}", next.pid()));
    assert_eq!(next.count("measured").await, 0, "the step is in the ledger");
    let lost = front.reaches(&once, "failed").await;
    assert_eq!(lost["error"]["code"], -32603, "{lost}");
    assert_eq!(
        (
            front.count("measure_anywhere started").await,
            next.count("wait_anywhere started").await
        ),
        (0, 0)
    );
}

/// A task that no node runs yet waits for a worker, and is cancelled where it lies.
pub(crate) async fn a_task_waits_for_a_worker(database: &mut Database) {
    let front = Node::configured("front", database, LONG_LEASE, &[("MCP_TASKS_WORK", "false")]).await;
    let waits = front.create("wait_anywhere", json!({"gate": "g"})).await;
    let called_off = front.create("wait_anywhere", json!({"gate": "g"})).await;
    front.cancel(&called_off).await;
    assert_eq!(front.task(&waits).await["status"], "working");
    let worker = Node::start("worker", database, LONG_LEASE).await;
    worker.open("g").await;
    let done = front.reaches(&waits, "completed").await;
    assert_eq!(words(&done), format!("passed g in process {}", worker.pid()));
    assert_eq!(front.task(&called_off).await["status"], "cancelled");
    assert_eq!(worker.count("wait_anywhere started").await, 1);
}
