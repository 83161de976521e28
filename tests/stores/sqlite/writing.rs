//! Writers that come at once, sweeps beside them, mutations that panic, futures that are dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mcp_tasks_core::{Change, Mutation, Report, TaskId, TaskStatus, TaskStore, WriteId};

use super::Fresh;
use crate::records::{at, create_two_hundred_leases, increment, json, record};

#[tokio::test(flavor = "multi_thread")]
async fn a_mutation_that_panics_fails_its_caller_alone() {
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
    let fresh = Arc::new(Fresh::with(|options| {
        options.durability(mcp_tasks::store::Durability::Normal)
    }));
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

#[tokio::test(flavor = "multi_thread")]
async fn of_cancel_and_complete_the_first_is_final_a_thousand_times() {
    let fresh = Arc::new(Fresh::with(|options| {
        options.durability(mcp_tasks::store::Durability::Normal)
    }));
    for round in 0..1_000 {
        let id = TaskId::new(&format!("t{round}"));
        fresh.create(record(id.as_str(), None)).await.unwrap();
        let complete: Mutation = Arc::new(|task| task.completed(1, at(5), &json(r#"{"content":[]}"#), None));
        let cancel: Mutation = Arc::new(|task| task.cancelled(at(6)));
        let ends = [(2, complete), (3, cancel)].map(|(write, end)| {
            let (fresh, id) = (fresh.clone(), id.clone());
            tokio::spawn(async move { fresh.update(&id, at(1), WriteId::new(write), end).await })
        });
        let [completed, cancelled] = ends;
        let outcomes = [completed.await, cancelled.await].map(|outcome| outcome.unwrap().unwrap().unwrap());
        assert!(outcomes[0].applied != outcomes[1].applied, "one of them ends it");
        let end = fresh.get(&id, at(7)).await.unwrap().unwrap();
        assert!(
            outcomes.iter().all(|outcome| outcome.record == end),
            "and both learn of that end"
        );
        assert_eq!(
            (end.version, end.result.is_some()),
            (2, end.status == TaskStatus::Completed)
        );
        // Nothing that comes later changes it.
        let late: Mutation = Arc::new(|task| task.progressed(1, at(9), &Report::new(9.0, "late".into())));
        let late = fresh.update(&id, at(9), WriteId::new(4), late).await.unwrap().unwrap();
        assert!(!late.applied && late.record == end);
    }
}

#[tokio::test]
async fn tasks_whose_node_is_gone_are_found_and_no_others() {
    let fresh = Fresh::new();
    let leases = fresh.store.as_expired_leases().unwrap();
    create_two_hundred_leases(&fresh).await;
    fresh
        .raw()
        .execute("UPDATE tasks SET record = '{' WHERE id = 't005'", [])
        .unwrap();
    let found = async |millis, limit| leases.expired_leases(at(millis), limit).await.unwrap().len();
    assert_eq!(found(0, 500).await, 0);
    assert_eq!(found(100, 500).await, 100 - 3);
    assert_eq!(found(100, 7).await, 7);
    assert_eq!(found(1_000, 500).await, 200 - 3);
    assert_eq!(found(1_001, 500).await, 100 - 3, "what has expired needs no sweep");
    assert_eq!(found(10_001, 500).await, 100 - 2);
}
