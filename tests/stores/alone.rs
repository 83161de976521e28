//! What the contract suite leaves out, as it needs a database to itself: sweeps beside everything else, and two nodes.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use mcp_tasks_core::store::contract::Differential;
use mcp_tasks_core::{MemoryStore, TaskId, TaskStore};

use crate::records::{at, record};

/// Two ways to one new database, as two nodes have them, and what keeps it there.
#[derive(Debug)]
pub(crate) struct TwoNodes {
    nodes: [Arc<dyn TaskStore>; 2],
    #[allow(dead_code, reason = "kept until the test is over")]
    keep: Box<dyn Debug + Send + Sync>,
}

impl TwoNodes {
    pub(crate) fn new(nodes: [Arc<dyn TaskStore>; 2], keep: impl Debug + Send + Sync + 'static) -> Self {
        Self {
            nodes,
            keep: Box::new(keep),
        }
    }

    /// One memory store, twice; also where a server is not installed, which was said.
    pub(crate) fn in_memory() -> Self {
        let store: Arc<dyn TaskStore> = Arc::new(MemoryStore::new());
        Self::new([store.clone(), store], ())
    }
}

/// Random operations on two nodes, with sweeps in between, are answered as by a plain map.
pub(crate) async fn two_nodes_answer_as_a_plain_map(database: TwoNodes) {
    let [first, second] = &database.nodes;
    for seed in [1, 2] {
        Differential::new(seed).sweeping().run(&[first, second]).await;
    }
}

/// Tasks are created as ever while a sweep is under way: all of them are there, and none waits for the sweep's end.
pub(crate) async fn creates_go_on_during_a_sweep(database: TwoNodes) {
    const EXPIRED: u64 = 2_000;
    const CREATED: u64 = 200;
    let [first, second] = &database.nodes;
    if second.as_sweep().is_none() {
        // The backend removes what has expired, and no sweep is ever under way.
        return;
    }
    let expired = (0..EXPIRED).map(|n| {
        let store = first.clone();
        tokio::spawn(async move { store.create(record(&format!("old-{n}"), Some(600_000))).await })
    });
    for created in futures::future::join_all(expired).await {
        created.unwrap().unwrap();
    }
    let now = at(0).saturating_add(Duration::from_millis(600_001));
    let sweeper = second.clone();
    let sweep = tokio::spawn(async move { sweeper.as_sweep().expect("it was there").sweep(now).await });
    let mut before_its_end = 0;
    for n in 0..CREATED {
        let mut new = record(&format!("new-{n}"), Some(600_000));
        new.created_at = now;
        first.create(new).await.unwrap();
        before_its_end += u64::from(!sweep.is_finished());
    }
    println!("{before_its_end} of {CREATED} were created before the sweep had ended");
    let removed = sweep.await.unwrap().unwrap();
    assert!(removed <= EXPIRED, "{removed}");
    for n in 0..CREATED {
        let id = TaskId::new(&format!("new-{n}"));
        assert!(second.get(&id, now).await.unwrap().is_some(), "{id}");
    }
    let left = second.as_sweep().expect("it was there").sweep(now).await.unwrap();
    assert_eq!(left, 0, "nothing that had expired was left");
    for n in [0, EXPIRED - 1] {
        let id = TaskId::new(&format!("old-{n}"));
        assert!(
            first.get(&id, at(0)).await.unwrap().is_none(),
            "{id} is gone by every clock"
        );
    }
}

/// Stamps these tests for a store: the module's name, and an `async` block that makes [`TwoNodes`].
macro_rules! on_a_database_of_its_own {
    ($name:ident, $database:expr) => {
        mod $name {
            use super::*;

            #[tokio::test(flavor = "multi_thread")]
            async fn two_nodes_answer_as_a_plain_map() {
                crate::alone::two_nodes_answer_as_a_plain_map($database.await).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn creates_go_on_during_a_sweep() {
                crate::alone::creates_go_on_during_a_sweep($database.await).await;
            }
        }
    };
}
pub(crate) use on_a_database_of_its_own;
