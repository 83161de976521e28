//! Tasks that sleep, whose node is killed meanwhile.

use futures::future::join_all;
use serde_json::json;

use crate::nodes::database::Database;
use crate::nodes::node::{LONG_LEASE, Node, PAST_LONG_LEASE, SHORT_LEASE, words};

/// How long the tools here sleep: longer than any test takes, and less than a clock is put forward.
const SLEEP_MS: u64 = PAST_LONG_LEASE - 1_000;

/// A task that sleeps is a record and nothing else: its process is not missed, and the node that looks at it when it is time
/// wakes it, once.
pub(crate) async fn a_sleeper_is_woken_elsewhere_once(database: &mut Database) {
    let (mut first, second) = Node::two(database, LONG_LEASE).await;
    let third = Node::start("third", database, LONG_LEASE).await;
    let id = first.create("nap", json!({"ms": SLEEP_MS})).await;
    first.logged("task sleeps").await;
    let asleep = second.task(&id).await;
    assert_eq!(
        (&asleep["status"], &asleep["statusMessage"]),
        (&json!("working"), &json!("1: resting"))
    );
    first.kill().await;
    assert_eq!(second.task(&id).await, asleep);
    assert_eq!(second.count("nap started").await, 0, "it is left alone until then");
    second.pass_the_lease().await;
    third.pass_the_lease().await;
    let looks = (0..8).flat_map(|_| [second.task(&id), third.task(&id)]);
    for task in join_all(looks).await {
        assert!(task["status"] == "working" || task["status"] == "completed", "{task}");
    }
    let done = third.reaches(&id, "completed").await;
    assert_eq!(second.task(&id).await, done);
    let by = [second.count("gets up").await, third.count("gets up").await];
    assert_eq!(by[0] + by[1], 1, "one of them woke it");
    let woken_by = if by[0] == 1 { second.pid() } else { third.pid() };
    assert_eq!(words(&done), format!("woken by process {woken_by}"));
    let started = second.count("nap started").await + third.count("nap started").await;
    assert_eq!(started, 1, "and ran it once");
    let lay_down = second.count("lies down").await + third.count("lies down").await;
    assert_eq!(lay_down, 0, "the step before is in the ledger");
}

/// Without a poll: another node finds it by itself.
pub(crate) async fn a_sleeper_is_woken_without_a_poll(database: &mut Database) {
    let (mut first, second) = Node::two(database, SHORT_LEASE).await;
    let id = first.create("nap", json!({"ms": SLEEP_MS})).await;
    first.logged("task sleeps").await;
    first.kill().await;
    second.pass_the_lease().await;
    second.noted("gets up").await;
    let done = second.reaches(&id, "completed").await;
    assert_eq!(words(&done), format!("woken by process {}", second.pid()));
}

/// The node that put it to sleep wakes it while it lives, and needs no scan for it.
pub(crate) async fn a_sleeper_is_woken_in_time_where_it_fell_asleep(database: &mut Database) {
    let (first, second) = Node::two(database, LONG_LEASE).await;
    let id = first.create("nap", json!({"ms": 10_500})).await;
    first.logged("task sleeps").await;
    first.noted("gets up").await;
    let done = second.reaches(&id, "completed").await;
    assert_eq!(words(&done), format!("woken by process {}", first.pid()));
    assert_eq!(
        (first.count("lies down").await, second.count("nap started").await),
        (1, 0)
    );
}

/// Cancelled while it sleeps, on whichever node, it is over, and no node wakes it.
pub(crate) async fn a_sleeper_is_cancelled_from_anywhere(database: &mut Database) {
    let (first, second) = Node::two(database, LONG_LEASE).await;
    let id = first.create("nap", json!({"ms": SLEEP_MS})).await;
    first.logged("task sleeps").await;
    second.cancel(&id).await;
    let cancelled = second.task(&id).await;
    assert_eq!(cancelled["status"], "cancelled");
    first.pass_the_lease().await;
    second.pass_the_lease().await;
    assert_eq!(first.task(&id).await, cancelled);
    assert_eq!(
        (first.count("gets up").await, second.count("nap started").await),
        (0, 0)
    );
}
