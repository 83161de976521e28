//! Writers that come at once, sweeps beside them, mutations that panic, futures that are dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mcp_tasks_core::{Change, Mutation, TaskId, TaskStore, WriteId};

use super::Fresh;
use crate::records::{at, increment, record};

#[tokio::test(flavor = "multi_thread")]
async fn a_mutation_that_panics_fails_its_caller_and_nobody_else() {
    let fresh = Arc::new(Fresh::new());
    for id in ["a", "b"] {
        fresh.create(record(id, None)).await.unwrap();
    }
    for round in 0..20_u32 {
        let panics = {
            let fresh = fresh.clone();
            tokio::spawn(async move {
                let panic: Mutation = Arc::new(|_| panic!("a mutation of the test"));
                fresh.update(&TaskId::new("a"), at(1), WriteId::new(9), panic).await
            })
        };
        let write = WriteId::new(u128::from(round) + 100);
        let beside = fresh.update(&TaskId::new("b"), at(1), write, increment()).await;
        assert!(beside.unwrap().unwrap().applied);
        assert!(panics.await.unwrap_err().is_panic());
    }
    let untouched = fresh.get(&TaskId::new("a"), at(1)).await.unwrap().unwrap();
    assert_eq!(untouched.version, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn creating_is_not_slowed_by_a_sweep() {
    let fresh = Arc::new(Fresh::with(|options| options.durability(mcp_tasks::Durability::Normal)));
    let fill: Vec<_> = (0..5_000)
        .map(|n| {
            let fresh = fresh.clone();
            tokio::spawn(async move { fresh.create(record(&format!("old{n}"), Some(0))).await.unwrap() })
        })
        .collect();
    for task in fill {
        task.await.unwrap();
    }
    let sweeping = {
        let fresh = fresh.clone();
        tokio::spawn(async move { fresh.as_sweep().unwrap().sweep(at(1)).await })
    };
    let mut slowest = Duration::ZERO;
    for n in 0..200 {
        let start = Instant::now();
        fresh.create(record(&format!("new{n}"), None)).await.unwrap();
        slowest = slowest.max(start.elapsed());
    }
    assert_eq!(sweeping.await.unwrap().unwrap(), 5_000);
    assert!(slowest < Duration::from_secs(1), "a create took {slowest:?}");
}

#[tokio::test]
async fn a_future_dropped_before_its_turn_writes_nothing() {
    let fresh = Fresh::new();
    fresh.create(record("t", None)).await.unwrap();
    let other = fresh.raw();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let id = TaskId::new("t");
    // The first keeps the thread waiting, the second waits behind it and is dropped.
    let first = fresh.store.clone();
    let first_id = id.clone();
    let waiting = tokio::spawn(async move { first.update(&first_id, at(1), WriteId::new(2), increment()).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let count: Mutation = Arc::new(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        Change::Keep
    });
    let second = fresh.update(&id, at(1), WriteId::new(3), count);
    assert!(tokio::time::timeout(Duration::from_millis(20), second).await.is_err());
    other.execute_batch("ROLLBACK").unwrap();
    assert!(waiting.await.unwrap().unwrap().unwrap().applied);
    fresh.delete(&TaskId::new("nothing")).await.unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}
