//! The sweep and the search for tasks of lost nodes: what they find, and what they cost.

use std::sync::Arc;

use mcp_tasks::store::{NatsOptions, NatsStore};
use mcp_tasks_core::{Change, Mutation, TaskId, TaskStore, WriteId};

use super::{Fresh, until};
use crate::records::{at, create_two_hundred_leases, increment, record};

/// A store that tells how many messages it has sent.
async fn counted(fresh: &Fresh) -> (NatsStore, impl Fn() -> u64) {
    let client = async_nats::connect(fresh.keeps.url()).await.unwrap();
    let statistics = client.statistics();
    let store = NatsOptions::from_client(client).open().unwrap();
    let sent = move || statistics.out_messages.load(std::sync::atomic::Ordering::Relaxed);
    (store, sent)
}

#[tokio::test]
async fn creating_reading_and_the_nodes_own_update_are_one_round_trip_each() {
    let Some(fresh) = Fresh::new() else { return };
    fresh.create(record("first", None)).await.unwrap();
    let (store, sent) = counted(&fresh).await;
    let id = TaskId::new("t");
    store.get(&id, at(1)).await.unwrap();
    for following in [false, true] {
        if following {
            store.as_sweep().unwrap().sweep(at(0)).await.unwrap();
        }
        let id = TaskId::new(if following { "u" } else { "t" });
        let before = sent();
        store.create(record(id.as_str(), None)).await.unwrap();
        assert_eq!(sent() - before, 1, "create");
        store.update(&id, at(1), WriteId::new(2), increment()).await.unwrap();
        assert_eq!(sent() - before, 2, "update");
        store.get(&id, at(1)).await.unwrap();
        assert_eq!(sent() - before, 3, "get");
        fresh.update(&id, at(1), WriteId::new(3), increment()).await.unwrap();
        let before = sent();
        store.update(&id, at(1), WriteId::new(4), increment()).await.unwrap();
        assert_eq!(
            sent() - before,
            3,
            "behind another node's write: one in vain, one to read, one to write"
        );
    }
}

#[tokio::test]
async fn a_sweep_costs_what_expired_and_leaves_no_mark_behind() {
    let Some(fresh) = Fresh::new() else { return };
    for n in 0..500 {
        fresh
            .create(record(&format!("stays{n}"), Some(1_000_000)))
            .await
            .unwrap();
    }
    for n in 0..20 {
        fresh.create(record(&format!("goes{n}"), Some(n))).await.unwrap();
    }
    let (store, sent) = counted(&fresh).await;
    let sweep = store.as_sweep().unwrap();
    assert_eq!(sweep.sweep(at(0)).await.unwrap(), 0);
    let before = sent();
    assert_eq!(sweep.sweep(at(10)).await.unwrap(), 10);
    assert_eq!(sent() - before, 20, "one to look at and one to remove each");
    assert_eq!(sweep.sweep(at(10)).await.unwrap(), 0);
    assert_eq!(sent() - before, 20);
    assert_eq!(fresh.messages().await, 510, "nothing is left of what was removed");
    // Another node has removed what this one knows of.
    assert_eq!(fresh.as_sweep().unwrap().sweep(at(20)).await.unwrap(), 10);
    let before = sent();
    assert_eq!(sweep.sweep(at(20)).await.unwrap(), 0);
    assert_eq!(sent() - before, 10);
    assert_eq!(sweep.sweep(at(20)).await.unwrap(), 0);
    assert_eq!(sent() - before, 10);
}

#[tokio::test]
async fn a_deadline_that_moves_is_followed_by_every_node() {
    let Some(fresh) = Fresh::new() else { return };
    let other = fresh.another();
    let sweep = other.as_sweep().unwrap();
    assert_eq!(sweep.sweep(at(0)).await.unwrap(), 0);
    for id in ["extended", "lifted", "short"] {
        fresh.create(record(id, Some(100))).await.unwrap();
    }
    let to = |ttl: Option<u64>| -> Mutation {
        Arc::new(move |task| {
            let mut next = task.clone();
            next.ttl_ms = ttl;
            Change::Write(Box::new(next))
        })
    };
    for (id, ttl) in [("extended", Some(200)), ("lifted", None)] {
        fresh
            .update(&TaskId::new(id), at(1), WriteId::new(2), to(ttl))
            .await
            .unwrap();
    }
    until(async || (sweep.sweep(at(101)).await.unwrap() == 1).then_some(())).await;
    until(async || (sweep.sweep(at(201)).await.unwrap() == 1).then_some(())).await;
    assert!(other.get(&TaskId::new("lifted"), at(201)).await.unwrap().is_some());
    assert_eq!(fresh.messages().await, 1);
}

#[tokio::test]
async fn marks_of_deletion_go_with_a_later_sweep() {
    let Some(fresh) = Fresh::new() else { return };
    for n in 0..200 {
        let id = TaskId::new(&format!("t{n}"));
        fresh.create(record(id.as_str(), None)).await.unwrap();
        fresh.delete(&id).await.unwrap();
    }
    // One comes again under the mark of its deletion.
    fresh.create(record("t7", None)).await.unwrap();
    assert_eq!(fresh.messages().await, 200);
    // The mark's time is the server's.
    let now = mcp_tasks_core::Timestamp::from_millis(
        u64::try_from(std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap(),
    );
    let sweep = fresh.as_sweep().unwrap();
    assert_eq!(sweep.sweep(now).await.unwrap(), 0);
    assert_eq!(
        fresh.messages().await,
        200,
        "a node that follows the bucket has a minute to read them"
    );
    let later = now.saturating_add(std::time::Duration::from_secs(120));
    assert_eq!(sweep.sweep(later).await.unwrap(), 0, "they are no tasks");
    assert_eq!(fresh.messages().await, 1);
    assert!(fresh.get(&TaskId::new("t7"), now).await.unwrap().is_some());
}

#[tokio::test]
async fn tasks_whose_node_is_gone_are_found_and_no_others() {
    let Some(fresh) = Fresh::new() else { return };
    let (other, sent) = counted(&fresh).await;
    let leases = other.as_expired_leases().unwrap();
    assert!(leases.expired_leases(at(0), 10).await.unwrap().is_empty());
    create_two_hundred_leases(&fresh).await;
    fresh.bucket().await.put("t005", "{".into()).await.unwrap();
    let found = async |millis, limit| leases.expired_leases(at(millis), limit).await.unwrap().len();
    until(async || (found(100, 500).await == 100 - 3).then_some(())).await;
    assert_eq!(found(0, 500).await, 0);
    assert_eq!(found(100, 7).await, 7);
    let before = sent();
    assert_eq!(found(10, 500).await, 10 - 3);
    assert!(sent() - before <= 7, "it costs what it finds");
    assert_eq!(found(1_000, 500).await, 200 - 3);
    assert_eq!(found(1_001, 500).await, 100 - 3, "what has expired needs no sweep");
    assert_eq!(found(10_001, 500).await, 100 - 2);
}
