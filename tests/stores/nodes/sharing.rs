//! Nodes that all live, and share their tasks.

use futures::future::join_all;
use serde_json::json;

use crate::nodes::database::Database;
use crate::nodes::node::{LONG_LEASE, Node, SHORT_LEASE, words, yes};

/// A task is any node's: created on one, it is polled, answered and read on the other, and both show the same.
pub(crate) async fn a_task_is_created_here_and_polled_answered_and_read_there(database: &mut Database) {
    let (first, second) = Node::two(database, LONG_LEASE).await;
    let id = first.create("ask", json!({})).await;
    let asked = second.reaches(&id, "input_required").await;
    assert!(asked["inputRequests"]["go"].is_object(), "{asked}");
    assert_eq!(first.task(&id).await, asked);
    second.answer(&id).await;
    let done = first.reaches(&id, "completed").await;
    assert_eq!(words(&done), "yes");
    assert_eq!(second.task(&id).await, done);
    assert_eq!(
        (first.count("ask").await, second.count("ask").await),
        (1, 1),
        "where it was answered it goes on"
    );
}

/// Tasks extension, "Task Cancellation": a cancel on one node stops the work on the other, its future and, by the token, its
/// thread.
pub(crate) async fn a_cancel_there_stops_the_work_here(database: &mut Database) {
    let (first, second) = Node::two(database, SHORT_LEASE).await;
    let waits = first.create("sleep", json!({})).await;
    let blocks = first.create("block", json!({})).await;
    first.noted("sleep started").await;
    first.noted("block started").await;
    for id in [&waits, &blocks] {
        second.cancel(id).await;
        assert_eq!(second.task(id).await["status"], "cancelled");
        assert_eq!(first.task(id).await["status"], "cancelled");
    }
    first.noted("sleep dropped").await;
    first.noted("block saw the token").await;
}

/// A parked task is cancelled where it lies: nothing of it runs anywhere, and an answer that comes after changes nothing.
pub(crate) async fn a_parked_task_is_cancelled_from_anywhere(database: &mut Database) {
    let (first, second) = Node::two(database, LONG_LEASE).await;
    let id = first.create("ask", json!({})).await;
    first.reaches(&id, "input_required").await;
    second.cancel(&id).await;
    let cancelled = second.task(&id).await;
    assert_eq!(cancelled["status"], "cancelled");
    first.answer(&id).await;
    assert_eq!(first.task(&id).await, cancelled);
    assert_eq!((first.count("ask").await, second.count("ask").await), (1, 0));
}

/// However many answers come at once, on whichever node, the task is resumed once.
pub(crate) async fn sixty_four_answers_at_once_resume_a_task_once(database: &mut Database) {
    const ANSWERS: usize = 64;
    let (first, second) = Node::two(database, LONG_LEASE).await;
    let nodes = [&first, &second];
    let id = first.create("ask", json!({})).await;
    second.reaches(&id, "input_required").await;
    let answers = (0..ANSWERS).map(|n| nodes[n % 2].try_ask("tasks/update", yes(&id)));
    for answer in join_all(answers).await {
        answer
            .expect("the server is there")
            .expect("every answer is acknowledged");
    }
    let done = first.reaches(&id, "completed").await;
    assert_eq!(words(&done), "yes");
    let runs = first.count("ask").await + second.count("ask").await;
    assert_eq!(runs, 2, "one run to the question, and one from the answer");
}

/// Three nodes, each of which does one thing of every task.
pub(crate) async fn three_nodes_take_turns(database: &mut Database) {
    const TASKS: usize = 12;
    let (first, second) = Node::two(database, LONG_LEASE).await;
    let third = Node::start("third", database, LONG_LEASE).await;
    let nodes = [&first, &second, &third];
    let tasks = (0..TASKS).map(|n| {
        let node = move |turn: usize| nodes[(n + turn) % nodes.len()];
        async move {
            let id = node(0).create("ask", json!({})).await;
            node(1).reaches(&id, "input_required").await;
            node(2).answer(&id).await;
            let done = node(0).reaches(&id, "completed").await;
            assert_eq!(words(&done), "yes");
            assert_eq!(node(1).task(&id).await, done);
        }
    });
    join_all(tasks).await;
    let mut runs = 0;
    for node in nodes {
        runs += node.count("ask").await;
    }
    assert_eq!(
        runs,
        2 * TASKS,
        "each task ran twice: to its question and from the answer"
    );
}
