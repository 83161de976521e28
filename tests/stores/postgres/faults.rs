//! Servers that are killed, frozen or full, and connections that are cut.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mcp_tasks_core::{StoreError, TaskId, TaskStore, WriteId};
use mcp_tasks_tests::servers;

use super::{PATIENCE, database, options, raw};
use crate::records::{at, increment, record};

/// A time-out that a loaded machine does not reach by itself, and what more an answer may take on one.
const TIMEOUT: Duration = Duration::from_secs(3);
const SLACK: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_is_there_after_the_server_was_killed_in_mid_traffic() {
    let Some(mut server) = servers::postgres(&[]) else {
        return;
    };
    let store = Arc::new(options(server.url()).timeout(TIMEOUT).open().unwrap());
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    let (failures, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..8_u32 {
        let (store, acknowledged) = (store.clone(), acknowledged.clone());
        let (failures, stop) = (failures.clone(), stop.clone());
        writers.spawn(async move {
            for n in 0_u32.. {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let (id, start) = (TaskId::new(&format!("t{writer}-{n}")), Instant::now());
                let outcome = match store.create(record(id.as_str(), None)).await {
                    Ok(_) => store.update(&id, at(1), WriteId::new(2), increment()).await.map(drop),
                    Err(error) => Err(error),
                };
                assert!(start.elapsed() < 2 * TIMEOUT + SLACK, "{:?}", start.elapsed());
                match outcome {
                    Ok(()) => acknowledged.lock().unwrap().push(id),
                    Err(error) => {
                        assert!(error.is_retryable(), "{error:?}");
                        failures.fetch_add(1, Ordering::SeqCst);
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                }
            }
        });
    }
    let reach = async |wanted: usize| {
        let reached = async {
            while acknowledged.lock().unwrap().len() < wanted {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, reached).await.expect("writes go on");
    };
    for round in 1..=3 {
        reach(round * 100).await;
        server.kill();
        let before = failures.load(Ordering::SeqCst);
        while failures.load(Ordering::SeqCst) < before + 8 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        server.start();
    }
    reach(400).await;
    stop.store(true, Ordering::SeqCst);
    while let Some(ended) = writers.join_next().await {
        ended.unwrap();
    }
    let acknowledged = std::mem::take(&mut *acknowledged.lock().unwrap());
    for id in acknowledged {
        let found = store.get(&id, at(1)).await.unwrap().expect("it was acknowledged");
        assert_eq!((found.version, found.poll_interval_ms), (2, 2_001));
    }
}

#[tokio::test]
async fn after_a_restart_no_stale_connection_is_noticed() {
    let Some(mut server) = servers::postgres(&["-c", "fsync=off"]) else {
        return;
    };
    let store = options(server.url()).open().unwrap();
    let id = TaskId::new("t");
    store.create(record("t", None)).await.unwrap();
    // Several connections, all of which end with the server.
    let reads = (0..4).map(|_| store.get(&id, at(1)));
    futures::future::try_join_all(reads).await.unwrap();
    server.start();
    let updated = store.update(&id, at(1), WriteId::new(2), increment()).await.unwrap();
    assert_eq!(updated.unwrap().record.version, 2);
}

/// Waits until a statement of `application` waits for a lock on another connection than `not`, and says on which.
async fn waiting(raw: &tokio_postgres::Client, application: &str, not: i32) -> i32 {
    let query = "SELECT pid FROM pg_stat_activity \
                 WHERE application_name = $1 AND pid <> $2 AND wait_event_type = 'Lock'";
    let found = async {
        loop {
            if let Some(row) = raw.query_opt(query, &[&application, &not]).await.unwrap() {
                return row.get(0);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, found)
        .await
        .expect("it waits for the lock")
}

#[tokio::test]
async fn a_connection_cut_in_the_middle_of_a_write_is_replaced_and_the_write_made_once() {
    let Some(url) = database().await else { return };
    let store = options(&format!("{url}?application_name=cut")).open().unwrap();
    store.create(record("t", None)).await.unwrap();
    let id = TaskId::new("t");
    let (mut holder, raw) = (raw(&url).await, raw(&url).await);
    let lock = holder.transaction().await.unwrap();
    lock.batch_execute("SELECT FROM mcp_tasks FOR UPDATE").await.unwrap();
    let cutting = async {
        let first = waiting(&raw, "cut", 0).await;
        raw.execute("SELECT pg_terminate_backend($1)", &[&first]).await.unwrap();
        waiting(&raw, "cut", first).await;
        lock.rollback().await.unwrap();
    };
    let (updated, ()) = tokio::join!(store.update(&id, at(1), WriteId::new(2), increment()), cutting);
    let updated = updated.unwrap().unwrap();
    assert!(updated.applied);
    assert_eq!((updated.record.version, updated.record.poll_interval_ms), (2, 2_001));
}

#[tokio::test]
async fn a_row_that_stays_locked_is_unavailable_in_time_and_usable_after() {
    let Some(url) = database().await else { return };
    let store = options(&format!("{url}?application_name=locked"));
    let store = store.timeout(TIMEOUT).open().unwrap();
    let patient = options(&url).open().unwrap();
    patient.create(record("t", None)).await.unwrap();
    store.get(&TaskId::new("t"), at(1)).await.unwrap();
    let id = TaskId::new("t");
    let (mut holder, raw) = (raw(&url).await, raw(&url).await);
    let lock = holder.transaction().await.unwrap();
    lock.batch_execute("SELECT FROM mcp_tasks FOR UPDATE").await.unwrap();
    let start = Instant::now();
    let error = store
        .update(&id, at(1), WriteId::new(2), increment())
        .await
        .unwrap_err();
    assert!(error.is_retryable() && start.elapsed() < SLACK, "{error}");
    // Readers do not wait, and nothing is left waiting on the server.
    assert!(store.get(&id, at(1)).await.unwrap().is_some());
    let query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'locked' AND wait_event_type = 'Lock'";
    let gone = async {
        while raw.query_one(query, &[]).await.unwrap().get::<_, i64>(0) > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone)
        .await
        .expect("the server gives the statement up too");
    lock.rollback().await.unwrap();
    let updated = store
        .update(&id, at(1), WriteId::new(2), increment())
        .await
        .unwrap()
        .unwrap();
    assert_eq!((updated.record.version, updated.record.poll_interval_ms), (2, 2_001));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_server_is_unavailable_in_time_and_usable_after() {
    let Some(server) = servers::postgres(&["-c", "fsync=off"]) else {
        return;
    };
    let store = options(server.url())
        .timeout(Duration::from_millis(500))
        .open()
        .unwrap();
    let patient = options(server.url()).open().unwrap();
    patient.create(record("t", None)).await.unwrap();
    let id = TaskId::new("t");
    while store.get(&id, at(1)).await.is_err() {}
    server.signal("STOP");
    let start = Instant::now();
    // More of them than there are connections: those that wait for one end too.
    let reads = (0..16).map(|_| async { store.get(&id, at(1)).await.unwrap_err() });
    for error in futures::future::join_all(reads).await {
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    }
    let write = store.update(&id, at(1), WriteId::new(2), increment()).await;
    assert!(write.unwrap_err().is_retryable());
    let sweep = store.as_sweep().unwrap().sweep(at(1)).await;
    assert!(sweep.unwrap_err().is_retryable());
    assert!(start.elapsed() < SLACK, "{:?}", start.elapsed());
    server.signal("CONT");
    let mended = async {
        loop {
            match store.update(&id, at(1), WriteId::new(2), increment()).await {
                Ok(updated) => return updated.unwrap(),
                Err(error) => assert!(error.is_retryable(), "{error}"),
            }
        }
    };
    let updated = tokio::time::timeout(PATIENCE, mended).await.expect("it mends itself");
    assert_eq!((updated.record.version, updated.record.poll_interval_ms), (2, 2_001));
}

#[tokio::test]
async fn a_full_disk_is_refused_and_what_is_stored_stays_usable() {
    let Some(url) = database().await else { return };
    let store = options(&url).open().unwrap();
    store.create(record("before", None)).await.unwrap();
    let raw = raw(&url).await;
    // As the server says it when its disk is full.
    raw.batch_execute(
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN RAISE 'could not extend file' USING ERRCODE = 'disk_full'; END $$; \
         CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON mcp_tasks FOR EACH ROW EXECUTE FUNCTION full_disk()",
    )
    .await
    .unwrap();
    let id = TaskId::new("before");
    let created = store.create(record("t", None)).await.map(drop);
    let updated = store.update(&id, at(1), WriteId::new(2), increment()).await.map(drop);
    for outcome in [created, updated] {
        let error = outcome.unwrap_err();
        assert!(
            matches!(error, StoreError::Refused { .. }) && error.to_string().contains("full"),
            "{error}"
        );
    }
    assert_eq!(store.get(&id, at(1)).await.unwrap().unwrap().version, 1);
    raw.batch_execute("DROP TRIGGER full_disk ON mcp_tasks").await.unwrap();
    store.create(record("t", None)).await.unwrap();
}

#[tokio::test]
async fn a_future_that_is_dropped_leaves_a_usable_store() {
    let Some(url) = database().await else { return };
    let store = options(&format!("{url}?application_name=dropped&pool_size=1"))
        .open()
        .unwrap();
    let patient = options(&url).open().unwrap();
    patient.create(record("t", None)).await.unwrap();
    let id = TaskId::new("t");
    store.get(&id, at(1)).await.unwrap();
    let (mut holder, raw) = (raw(&url).await, raw(&url).await);
    let lock = holder.transaction().await.unwrap();
    lock.batch_execute("SELECT FROM mcp_tasks FOR UPDATE").await.unwrap();
    tokio::select! {
        outcome = store.update(&id, at(1), WriteId::new(2), increment()) => panic!("{outcome:?}"),
        _ = waiting(&raw, "dropped", 0) => {}
    }
    // The one connection there may be was under way with the write; another takes its place at once.
    assert!(store.get(&id, at(1)).await.unwrap().is_some());
    lock.rollback().await.unwrap();
}
