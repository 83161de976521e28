//! Servers that are killed, frozen, late; runtimes that end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use mcp_tasks::store::NatsOptions;
use mcp_tasks_core::{StoreError, TaskId, TaskStore, WriteId};
use mcp_tasks_tests::servers::nats;

use super::{Fresh, until};
use crate::records::{at, increment, record};

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_is_there_after_kill_9_in_the_midst_of_traffic() {
    let Some(mut fresh) = Fresh::with(&[], |options| options.timeout(Duration::from_secs(2))) else {
        return;
    };
    fresh.create(record("warm", None)).await.unwrap();
    let writers: Vec<_> = (0..16_u128)
        .map(|writer| {
            let store = fresh.store.clone();
            tokio::spawn(async move {
                // Creates a task and counts in it until the server is gone; what is acknowledged is remembered.
                let (id, mut acknowledged) = (format!("t{writer}"), 0_u64);
                if store.create(record(&id, None)).await.is_err() {
                    return None;
                }
                for write in 2.. {
                    match store
                        .update(&TaskId::new(&id), at(1), WriteId::new(write), increment())
                        .await
                    {
                        Ok(updated) => acknowledged = updated.expect("it is there").record.poll_interval_ms,
                        Err(error) => {
                            assert!(error.is_retryable(), "{error:?}");
                            return Some((id, acknowledged, write));
                        }
                    }
                }
                unreachable!("the server is killed")
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    fresh.keeps.kill();
    let mut acknowledged = BTreeMap::new();
    for writer in writers {
        if let Some((id, count, write)) = writer.await.unwrap() {
            acknowledged.insert(id, (count, write));
        }
    }
    assert!(!acknowledged.is_empty());
    fresh.keeps.start();
    for (id, (count, write)) in acknowledged {
        let task = TaskId::new(&id);
        // The write whose acknowledgement was lost is repeated and counts once, whether it had taken effect or not.
        let updated = until(async || {
            let updated = fresh.update(&task, at(1), WriteId::new(write), increment()).await;
            updated
                .inspect_err(|error| assert!(error.is_retryable(), "{error:?}"))
                .ok()
        });
        let record = updated.await.expect("it is there").record;
        assert_eq!(record.poll_interval_ms, (count.max(2_000)) + 1, "{id}");
        assert_eq!(record.last_write, Some(WriteId::new(write)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_server_is_unavailable_in_time_and_what_it_does_later_counts_once() {
    let Some(fresh) = Fresh::with(&[], |options| options.timeout(Duration::from_secs(1))) else {
        return;
    };
    let id = TaskId::new("t");
    fresh.create(record("t", Some(1_000_000))).await.unwrap();
    fresh.as_sweep().unwrap().sweep(at(0)).await.unwrap();
    fresh.keeps.signal("STOP");
    // Its threads stop one after the other.
    until(async || fresh.get(&id, at(1)).await.is_err().then_some(())).await;
    let start = Instant::now();
    let outcomes = tokio::join!(
        async { fresh.get(&id, at(1)).await.map(drop) },
        async { fresh.update(&id, at(1), WriteId::new(2), increment()).await.map(drop) },
        async { fresh.create(record("u", None)).await.map(drop) },
        async { fresh.delete(&id).await },
        async { fresh.as_sweep().unwrap().sweep(at(2_000_000)).await.map(drop) },
    );
    let took = start.elapsed();
    for outcome in [outcomes.0, outcomes.1, outcomes.2, outcomes.3, outcomes.4] {
        assert!(matches!(outcome, Err(StoreError::Unavailable { .. })), "{outcome:?}");
    }
    assert!(took < Duration::from_secs(5), "{took:?}");
    fresh.keeps.signal("CONT");
    let updated = until(async || fresh.update(&id, at(1), WriteId::new(2), increment()).await.ok()).await;
    let updated = updated.unwrap();
    assert_eq!(
        (updated.record.poll_interval_ms, updated.record.version, updated.applied),
        (2_001, 2, true)
    );
    let created = until(async || fresh.create(record("u", None)).await.ok()).await;
    assert_eq!(created.version, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_sent_late_changes_nothing_that_came_in_between() {
    let Some(mut fresh) = Fresh::with(&[], |options| options.timeout(Duration::from_secs(1))) else {
        return;
    };
    let id = TaskId::new("t");
    fresh.create(record("t", None)).await.unwrap();
    fresh.keeps.kill();
    // The driver holds these back until there is a connection again.
    for write in 2..5 {
        assert!(
            fresh
                .update(&id, at(1), WriteId::new(write), increment())
                .await
                .is_err()
        );
    }
    fresh.delete(&id).await.unwrap_err();
    fresh.keeps.start();
    let other = fresh.another();
    let theirs = until(async || other.update(&id, at(1), WriteId::new(100), increment()).await.ok()).await;
    let theirs = theirs.expect("it was not deleted").record.version;
    until(async || fresh.get(&id, at(1)).await.ok()).await;
    let now = fresh.get(&id, at(1)).await.unwrap().unwrap();
    assert!(
        now.version <= 3 && theirs <= 3,
        "at most one of three equal expectations was met"
    );
    assert_eq!(now.poll_interval_ms, 1_999 + now.version);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_later_is_found() {
    let Some(mut server) = nats(&["--user", "me", "--pass", "hunter2"]) else {
        return;
    };
    server.kill();
    let url = server.url().replace("nats://", "nats://me:hunter2@");
    let late = NatsOptions::new(&url).unwrap().timeout(Duration::from_secs(2));
    let store = late.open().unwrap();
    let error = store.get(&TaskId::new("t"), at(0)).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert!(!format!("{error:?} {error}").contains("hunter2"));
    server.start();
    assert!(store.get(&TaskId::new("t"), at(0)).await.unwrap().is_none());
}

#[test]
fn a_store_outlives_the_runtime_it_was_first_used_on() {
    let Some(fresh) = Fresh::new() else { return };
    let id = TaskId::new("t");
    for round in 0..3_u128 {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        let runtime = runtime.unwrap();
        runtime.block_on(async {
            if round == 0 {
                fresh.create(record("t", None)).await.unwrap();
                fresh.create(record("short", Some(2))).await.unwrap();
            }
            let updated = fresh
                .update(&id, at(1), WriteId::new(round + 2), increment())
                .await
                .unwrap();
            assert_eq!(u128::from(updated.unwrap().record.version), round + 2);
            let swept = fresh
                .as_sweep()
                .unwrap()
                .sweep(at(u64::try_from(round).unwrap() * 2))
                .await
                .unwrap();
            assert_eq!(swept, u64::from(round == 2));
        });
    }
}
