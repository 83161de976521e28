//! Servers that are killed, freeze, cut connections and fill up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mcp_tasks_core::{StoreError, TaskId, TaskStore, WriteId};
use redis::Commands;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{fresh, fresh_with};
use crate::records::{at, increment, json, record};

/// Within this the operations of these tests end, whatever happens: their time-out, and what a loaded machine adds.
const TIMEOUT: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(12);

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_acknowledged_survives_kill_9_in_the_middle_of_traffic() {
    let Some(mut fresh) = fresh_with(&[], |options| options.timeout(TIMEOUT)) else {
        return;
    };
    let (stop, total) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let writers: Vec<_> = (0..8_u64)
        .map(|writer| {
            let (store, stop, total) = (fresh.store.clone(), stop.clone(), total.clone());
            tokio::spawn(async move {
                let (mut created, mut errors) = (Vec::new(), 0_u64);
                while !stop.load(Ordering::Relaxed) {
                    let id = format!("w{writer}-{}", created.len());
                    let start = Instant::now();
                    // Repeated under its write id until it is acknowledged, as the runtime does.
                    let outcome = store.create(record(&id, Some(600_000))).await;
                    assert!(start.elapsed() < PATIENCE, "nothing hangs: {:?}", start.elapsed());
                    match outcome {
                        Ok(_) => created.push(id),
                        Err(error) => {
                            assert!(error.is_retryable(), "{error}");
                            errors += 1;
                            tokio::time::sleep(Duration::from_millis(5)).await;
                            continue;
                        }
                    }
                    total.fetch_add(1, Ordering::Relaxed);
                }
                (created, errors)
            })
        })
        .collect();
    for round in 1..=3_u64 {
        super::until("traffic goes on", || total.load(Ordering::Relaxed) >= round * 300).await;
        fresh.keeps.kill();
        if round == 2 {
            // A request meets it dead.
            assert!(fresh.get(&TaskId::new("t"), at(1)).await.unwrap_err().is_retryable());
        }
        fresh.keeps.start();
    }
    super::until("traffic goes on", || total.load(Ordering::Relaxed) >= 1_200).await;
    stop.store(true, Ordering::Relaxed);
    let mut acknowledged = 0;
    for writer in writers {
        let (created, _) = writer.await.unwrap();
        acknowledged += created.len();
        for id in created {
            let found = fresh.get(&TaskId::new(&id), at(1)).await.unwrap();
            assert!(found.is_some(), "{id} was acknowledged");
        }
    }
    assert!(acknowledged >= 1_200);
}

#[tokio::test]
async fn after_a_restart_no_caller_sees_an_error_and_scripts_are_there_again() {
    let Some(mut fresh) = fresh() else { return };
    fresh.create(record("t", None)).await.unwrap();
    let id = TaskId::new("t");
    for n in 0..3 {
        fresh.keeps.kill();
        fresh.keeps.start();
        // The connection is dead, and the server has no script.
        let updated = fresh
            .update(&id, at(1), WriteId::new(n + 2), increment())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(u128::from(updated.record.version), n + 2);
    }
    let () = redis::cmd("SCRIPT").arg("FLUSH").query(&mut fresh.raw()).unwrap();
    let updated = fresh
        .update(&id, at(1), WriteId::new(50), increment())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(updated.record.version, 5);
}

#[tokio::test]
async fn a_connection_that_is_cut_is_replaced() {
    let Some(fresh) = fresh() else { return };
    fresh.create(record("t", None)).await.unwrap();
    let (mut raw, id) = (fresh.raw(), TaskId::new("t"));
    for n in 0..20_u128 {
        let cut: u32 = redis::cmd("CLIENT")
            .arg("KILL")
            .arg("TYPE")
            .arg("normal")
            .query(&mut raw)
            .unwrap();
        assert!(cut >= 1, "the store's connection");
        let updated = fresh
            .update(&id, at(1), WriteId::new(n + 2), increment())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            u128::from(updated.record.version),
            n + 2,
            "and nothing is applied twice"
        );
    }
}

#[tokio::test]
async fn a_frozen_server_is_unavailable_in_time_and_recovers() {
    let Some(fresh) = fresh_with(&[], |options| options.timeout(Duration::from_millis(300))) else {
        return;
    };
    fresh.create(record("t", None)).await.unwrap();
    let id = TaskId::new("t");
    fresh.keeps.signal("STOP");
    for n in 0..3_u128 {
        let start = Instant::now();
        // A connection that answers nothing, then ones that are never greeted.
        let (read, written, created) = tokio::join!(
            fresh.get(&id, at(1)),
            fresh.store.update(&id, at(1), WriteId::new(n + 2), increment()),
            fresh.create(record("beside", None)),
        );
        for error in [read.unwrap_err(), written.unwrap_err(), created.unwrap_err()] {
            assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
        }
        assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    }
    fresh.keeps.signal("CONT");
    let store = super::RedisStore::open(fresh.keeps.url()).unwrap();
    store.get(&id, at(1)).await.unwrap().unwrap();
    fresh.get(&id, at(1)).await.unwrap().unwrap();
    // What timed out may have arrived or not; under its id it is applied once.
    let before = store.get(&id, at(1)).await.unwrap().unwrap();
    let again = fresh
        .update(&id, at(1), WriteId::new(4), increment())
        .await
        .unwrap()
        .unwrap();
    let expected = before.version + u64::from(before.last_write != Some(WriteId::new(4)));
    assert_eq!(again.record.version, expected);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable_at_once() {
    let port = mcp_tasks_tests::servers::free_port();
    let store = super::RedisStore::open(&format!("redis://:hunter2@127.0.0.1:{port}")).unwrap();
    let start = Instant::now();
    let error = store.get(&TaskId::new("t"), at(1)).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "it is refused, which need not be waited for"
    );
    assert!(!format!("{error:?} {error} {store:?}").contains("hunter2"));
}

#[tokio::test]
async fn full_memory_is_refused_and_what_is_stored_stays_usable() {
    let Some(fresh) = fresh_with(&["--maxmemory", "8mb", "--maxmemory-policy", "noeviction"], |options| {
        options
    }) else {
        return;
    };
    let mut stored = 0;
    let error = loop {
        let mut task = record(&format!("t{stored}"), Some(600_000));
        task.arguments = json(&format!(r#"{{"a":"{}"}}"#, "x".repeat(100_000)));
        match fresh.create(task).await {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
        assert!(stored < 1_000, "the memory is never full");
    };
    assert!(
        matches!(error, StoreError::Refused { .. }) && !error.is_retryable(),
        "{error}"
    );
    assert!(error.to_string().contains("maxmemory"), "{error}");
    let beyond = TaskId::new(&format!("t{stored}"));
    assert!(
        fresh.get(&beyond, at(1)).await.unwrap().is_none(),
        "nothing of it is there"
    );
    for n in 0..stored {
        assert!(
            fresh
                .get(&TaskId::new(&format!("t{n}")), at(1))
                .await
                .unwrap()
                .is_some(),
            "t{n} of {stored}"
        );
    }
    let first = TaskId::new("t0");
    let error = fresh
        .update(&first, at(1), WriteId::new(2), increment())
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error}");
    assert_eq!(fresh.get(&first, at(1)).await.unwrap().unwrap().version, 1);
    for n in 1..stored {
        fresh.delete(&TaskId::new(&format!("t{n}"))).await.unwrap();
    }
    let updated = fresh
        .update(&first, at(1), WriteId::new(2), increment())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(updated.record.version, 2);
    let indexed: usize = (0..64)
        .map(|shard| fresh.raw().zcard::<_, usize>(format!("mcp-tasks:{{{shard}}}")).unwrap())
        .sum();
    assert_eq!(indexed, 0, "no task here has a lease");
}

#[tokio::test]
async fn a_replica_is_unavailable_until_it_takes_writes() {
    let (Some(primary), Some(fresh)) = (mcp_tasks_tests::servers::redis(&[]), fresh()) else {
        return;
    };
    fresh.create(record("t", None)).await.unwrap();
    let replicaof = |host: &str, port: &str| {
        let () = redis::cmd("REPLICAOF")
            .arg(host)
            .arg(port)
            .query(&mut fresh.raw())
            .unwrap();
    };
    replicaof("127.0.0.1", &primary.port().to_string());
    let error = fresh.create(record("u", None)).await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("replica"), "{error}");
    replicaof("NO", "ONE");
    fresh.create(record("u", None)).await.unwrap();
}

#[test]
fn a_store_goes_on_in_another_runtime() {
    let Some(fresh) = fresh() else { return };
    for n in 0..3 {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            fresh.create(record(&format!("t{n}"), None)).await.unwrap();
        });
    }
}

/// A server behind a line. Each answer waits for what `before` returns for the connection, which are counted from 0.
async fn line<F>(port: u16, before: impl Fn(usize) -> F + Clone + Send + 'static) -> String
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for connection in 0.. {
            let Ok((near, _)) = listener.accept().await else { return };
            let before = before.clone();
            let far = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let ((mut from_near, mut to_near), (mut from_far, mut to_far)) = (near.into_split(), far.into_split());
            tokio::spawn(async move { tokio::io::copy(&mut from_near, &mut to_far).await });
            tokio::spawn(async move {
                let mut answer = vec![0; 64 * 1024];
                while let Ok(length @ 1..) = from_far.read(&mut answer).await {
                    before(connection).await;
                    if to_near.write_all(&answer[..length]).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    url
}

/// The time-out is that of the operation, and not of each of its round trips.
#[tokio::test]
async fn an_update_of_several_round_trips_is_answered_in_time() {
    let Some(fresh) = fresh() else { return };
    fresh.create(record("t", None)).await.unwrap();
    // Two answers fit into the time: to the greeting, and to the question what is there. That to the write does not.
    let url = line(fresh.keeps.port(), |_| tokio::time::sleep(TIMEOUT * 2 / 5)).await;
    let slow = mcp_tasks::store::RedisOptions::new(&url)
        .unwrap()
        .timeout(TIMEOUT)
        .open()
        .unwrap();
    let id = TaskId::new("t");
    let start = Instant::now();
    let error = slow.update(&id, at(1), WriteId::new(2), increment()).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    // The write may have arrived; under its id it is applied once.
    let updated = fresh.update(&id, at(1), WriteId::new(2), increment()).await.unwrap();
    assert_eq!(updated.unwrap().record.version, 2);
}

/// A connection whose other end has vanished is replaced, also where every caller gives up before the time-out.
#[tokio::test]
async fn a_connection_that_does_not_answer_is_replaced_though_callers_have_less_patience() {
    let Some(fresh) = fresh() else { return };
    fresh.create(record("t", None)).await.unwrap();
    let vanished = Arc::new(AtomicBool::new(false));
    let has_vanished = vanished.clone();
    let url = line(fresh.keeps.port(), move |connection| {
        let is_silent = connection == 0 && has_vanished.load(Ordering::SeqCst);
        async move {
            if is_silent {
                // Neither an answer nor an end.
                std::future::pending().await
            }
        }
    })
    .await;
    let store = mcp_tasks::store::RedisOptions::new(&url)
        .unwrap()
        .timeout(TIMEOUT)
        .open()
        .unwrap();
    let id = TaskId::new("t");
    store.get(&id, at(1)).await.unwrap().unwrap();
    vanished.store(true, Ordering::SeqCst);
    let start = Instant::now();
    loop {
        let patient = tokio::time::timeout(TIMEOUT / 4, store.get(&id, at(1)));
        if let Ok(found) = patient.await {
            found.unwrap().unwrap();
            break;
        }
        assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    }
}
