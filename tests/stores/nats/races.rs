//! What happens at once, in two processes' stores.

use std::sync::Arc;

use mcp_tasks_core::{Mutation, Report, TaskId, TaskStatus, TaskStore, WriteId};

use super::Fresh;
use crate::records::{at, increment, json, record};

#[tokio::test(flavor = "multi_thread")]
async fn of_cancel_and_complete_the_first_is_final_a_thousand_times() {
    let Some(fresh) = Fresh::new() else { return };
    let other = fresh.another();
    for round in 0..1_000 {
        let id = TaskId::new(&format!("t{round}"));
        fresh.create(record(id.as_str(), None)).await.unwrap();
        let complete: Mutation = Arc::new(|task| task.completed(1, at(5), &json(r#"{"content":[]}"#), None));
        let cancel: Mutation = Arc::new(|task| task.cancelled(at(6)));
        let (completed, cancelled) = tokio::join!(
            fresh.update(&id, at(1), WriteId::new(2), complete),
            other.update(&id, at(1), WriteId::new(3), cancel),
        );
        let (completed, cancelled) = (completed.unwrap().unwrap(), cancelled.unwrap().unwrap());
        assert!(completed.applied != cancelled.applied, "one of them ends it");
        let end = fresh.get(&id, at(7)).await.unwrap().unwrap();
        assert!(
            completed.record == end && cancelled.record == end,
            "and both learn of that end"
        );
        assert_eq!(
            (end.version, end.result.is_some()),
            (2, end.status == TaskStatus::Completed)
        );
        // Nothing that comes later changes it.
        let late: Mutation = Arc::new(|task| task.progressed(1, at(9), &Report::new(9.0, "late".into())));
        let late = other.update(&id, at(9), WriteId::new(4), late).await.unwrap().unwrap();
        assert!(!late.applied && late.record == end);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_by_two_stores_are_all_applied() {
    let Some(fresh) = Fresh::new() else { return };
    let stores = [fresh.store.clone(), fresh.another()];
    for n in 0..10 {
        fresh.create(record(&format!("t{n}"), None)).await.unwrap();
    }
    let writers: Vec<_> = (0..40_u128)
        .map(|writer| {
            let store = stores[usize::from(writer % 2 == 0)].clone();
            tokio::spawn(async move {
                for n in 0..10_u128 {
                    let id = TaskId::new(&format!("t{}", (writer + n) % 10));
                    let write = WriteId::new(1_000 + writer * 100 + n);
                    loop {
                        match store.update(&id, at(1), write, increment()).await {
                            Err(error) if error.is_retryable() => {}
                            outcome => break assert!(outcome.unwrap().unwrap().applied),
                        }
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    for n in 0..10 {
        let task = fresh.get(&TaskId::new(&format!("t{n}")), at(1)).await.unwrap().unwrap();
        assert_eq!((task.poll_interval_ms, task.version), (2_040, 41));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_among_writes_happens_once_and_resurrects_nothing() {
    let Some(fresh) = Fresh::new() else { return };
    let other = fresh.another();
    for round in 0..100 {
        let id = TaskId::new(&format!("t{round}"));
        fresh.create(record(id.as_str(), None)).await.unwrap();
        let (deleted, updated) = tokio::join!(
            other.delete(&id),
            fresh.update(&id, at(1), WriteId::new(2), increment()),
        );
        deleted.unwrap();
        updated.unwrap();
        assert!(fresh.get(&id, at(1)).await.unwrap().is_none());
        let late = fresh.update(&id, at(1), WriteId::new(3), increment()).await.unwrap();
        assert!(late.is_none());
    }
}
