//! The compare-and-set store: round trips, lost answers, contention, lifetime, and the contract suite.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use mcp_tasks_core::store::CasBackend;
use mcp_tasks_core::{
    CasStore, Change, ClientCapabilities, Json, Mutation, Report, StoreError, TaskId, TaskRecord, TaskStore, Timestamp,
    Updated, WriteId,
};

use super::cas_backend::{Fault, MemoryBackend, backend};
use super::stores::{block_on, on_a_thread};

mcp_tasks_core::store_contract! {
    over_memory,
    block_on = block_on,
    async { CasStore::new(MemoryBackend::default()) },
}

mcp_tasks_core::store_contract! {
    over_memory_on_threads,
    block_on = block_on,
    async { CasStore::new(MemoryBackend::default()) },
    spawn = on_a_thread,
}

mcp_tasks_core::store_contract! {
    over_memory_without_what_was_seen,
    block_on = block_on,
    async { CasStore::new(MemoryBackend::default()).with_memory(0).with_prefix("other/") },
}

/// Some writes are slow, so that others overtake them.
fn uneven() -> MemoryBackend {
    let backend = MemoryBackend::default();
    let faults = [Fault::Slow, Fault::None, Fault::None, Fault::Slow, Fault::Conflict];
    for _ in 0..200 {
        backend.fail_next(&faults);
    }
    backend
}

mcp_tasks_core::store_contract! { over_a_slow_backend, block_on = block_on, async { CasStore::new(uneven()) } }

fn json(text: &str) -> Json {
    serde_json::from_str(text).unwrap()
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000 + millis)
}

fn record(id: &str, ttl_ms: Option<u64>) -> TaskRecord {
    let mut record = TaskRecord::new(
        TaskId::new(id),
        "encode".into(),
        json("{}"),
        ClientCapabilities::new(json("{}")),
        at(0),
        ttl_ms.map(Duration::from_millis),
        Duration::from_secs(2),
    );
    record.last_write = Some(WriteId::new(1));
    record
}

/// Progress of the execution, as the runtime writes it.
fn progress(value: f64, now: Timestamp) -> Mutation {
    Arc::new(move |record| record.progressed(1, now, &Report::new(value, value.to_string().into())))
}

async fn update<B: CasBackend>(
    store: &CasStore<B>,
    millis: u64,
    write: u128,
    mutation: Mutation,
) -> Result<Option<Updated>, StoreError> {
    store
        .update(&TaskId::new("t"), at(millis), WriteId::new(write), mutation)
        .await
}

#[test]
fn the_node_that_writes_on_pays_one_round_trip() {
    block_on(async {
        let backend = backend();
        let store = CasStore::new(backend.clone());
        store.create(record("t", Some(60_000))).await.unwrap();
        for n in 2..10_u32 {
            let before = backend.trips.load(SeqCst);
            let updated = update(&store, 1, n.into(), progress(n.into(), at(1))).await;
            assert!(updated.unwrap().unwrap().applied);
            assert_eq!(backend.trips.load(SeqCst) - before, 1, "write {n}");
        }
        // Another node: reads, writes. This one, afterwards: tries, reads, writes, and is back at one.
        let other = CasStore::new(backend.clone());
        for (store, write, trips) in [(&other, 20_u32, 2), (&store, 21, 3), (&store, 22, 1), (&other, 23, 3)] {
            let before = backend.trips.load(SeqCst);
            let updated = update(store, 1, write.into(), progress(write.into(), at(1))).await;
            assert!(updated.unwrap().unwrap().applied);
            assert_eq!(backend.trips.load(SeqCst) - before, trips, "write {write}");
        }
        let end = store.get(&TaskId::new("t"), at(2)).await.unwrap().unwrap();
        assert_eq!((end.version, end.progress), (13, Some(23.0)));
    });
}

#[test]
fn what_was_seen_decides_nothing_but_where_to_begin() {
    block_on(async {
        let backend = backend();
        let (store, other) = (CasStore::new(backend.clone()), CasStore::new(backend.clone()));
        store.create(record("t", Some(1_000))).await.unwrap();
        // Extended by the other node: not expired here.
        let extend: Mutation = Arc::new(|record| record.extended(1, at(1), Some(Duration::from_secs(9))));
        update(&other, 1, 2, extend).await.unwrap().unwrap();
        let late = update(&store, 5_000, 3, progress(1.0, at(5_000))).await.unwrap();
        assert!(late.unwrap().applied);
        // Reported by the other node: a lower report is nothing new, whatever was seen here.
        update(&other, 1, 4, progress(9.0, at(1))).await.unwrap();
        let lower = update(&store, 1, 5, progress(5.0, at(1))).await.unwrap().unwrap();
        assert_eq!((lower.applied, lower.record.progress), (false, Some(9.0)));
        // Nothing to do by what was seen here, and something by what the other node made of it.
        let lives_for =
            |secs| -> Mutation { Arc::new(move |record| record.extended(1, at(1), Some(Duration::from_secs(secs)))) };
        update(&other, 1, 10, lives_for(20)).await.unwrap().unwrap();
        let shortened = update(&store, 1, 11, lives_for(9)).await.unwrap().unwrap();
        assert!(shortened.applied && shortened.record.ttl_ms == Some(9_000));
        // Ended by the other node: final, though it works by what was seen here.
        let end: Mutation = Arc::new(|record| record.cancelled(at(2)));
        update(&other, 2, 6, end.clone()).await.unwrap();
        let again = update(&store, 2, 7, end).await.unwrap().unwrap();
        assert!(!again.applied && again.record.status.is_terminal());
        // Deleted and created anew by the other node, at the version that was seen here.
        store.delete(&TaskId::new("t")).await.unwrap();
        store.create(record("t", None)).await.unwrap();
        other.delete(&TaskId::new("t")).await.unwrap();
        let mut anew = record("t", None);
        (anew.tool, anew.last_write) = ("other".into(), Some(WriteId::new(8)));
        other.create(anew).await.unwrap();
        let updated = update(&store, 2, 9, progress(1.0, at(2))).await.unwrap().unwrap();
        assert_eq!(&*updated.record.tool, "other");
    });
}

#[test]
fn a_lost_answer_is_recognised_and_the_write_applied_once() {
    block_on(async {
        for fault in [Fault::AppliedThenLost, Fault::FailedBefore, Fault::AppliedThenConflict] {
            for memory in [0, 1 << 20] {
                let backend = backend();
                let store = CasStore::new(backend.clone()).with_memory(memory);
                let repeats = fault != Fault::AppliedThenConflict;

                backend.fail_next(&[fault]);
                let first = store.create(record("t", None)).await;
                let created = if repeats {
                    assert!(first.unwrap_err().is_retryable());
                    store.create(record("t", None)).await.unwrap()
                } else {
                    first.unwrap()
                };
                assert_eq!(created.version, 1, "{fault:?}");

                let increment: Mutation = Arc::new(|record| {
                    let mut next = record.clone();
                    next.poll_interval_ms += 1;
                    Change::Write(Box::new(next))
                });
                backend.fail_next(&[fault]);
                let first = update(&store, 1, 2, increment.clone()).await;
                let updated = if repeats {
                    assert!(first.unwrap_err().is_retryable());
                    update(&store, 1, 2, increment).await.unwrap().unwrap()
                } else {
                    first.unwrap().unwrap()
                };
                assert!(updated.applied, "{fault:?}");
                assert_eq!((updated.record.version, updated.record.poll_interval_ms), (2, 2_001));
            }
        }
    });
}

#[test]
fn a_storm_of_conflicts_is_sat_out_with_growing_scattered_pauses_and_ends() {
    block_on(async {
        let backend = backend();
        let store = CasStore::new(backend.clone());
        store.create(record("t", None)).await.unwrap();
        backend.fail_next(&[Fault::Conflict; 30]);
        let updated = update(&store, 1, 2, progress(1.0, at(1))).await.unwrap().unwrap();
        assert!(updated.applied && updated.record.version == 2);
        let pauses = std::mem::take(&mut *backend.pauses.lock().unwrap());
        // The first conflict was with what was seen, the second is an encounter; then there are pauses.
        assert_eq!(pauses.len(), 28);
        assert!(pauses.iter().all(|pause| *pause <= Duration::from_millis(64)));
        assert!(pauses[..3].iter().all(|pause| *pause <= Duration::from_millis(4)));
        let distinct: std::collections::BTreeSet<_> = pauses[10..].iter().collect();
        assert!(distinct.len() > 10, "they are scattered: {pauses:?}");

        backend.fail_next(&[Fault::Conflict; 1_000]);
        let error = update(&store, 1, 3, progress(2.0, at(1))).await.unwrap_err();
        assert!(error.is_retryable(), "{error}");
        let others = std::mem::take(&mut *backend.pauses.lock().unwrap());
        assert_ne!(pauses[..20], others[..20], "another write waits otherwise");
        assert!(others.iter().sum::<Duration>() < Duration::from_secs(3));
        backend.faults.lock().unwrap().clear();
        let found = store.get(&TaskId::new("t"), at(1)).await.unwrap().unwrap();
        assert_eq!(found.version, 2, "a write that was given up has not taken effect");

        backend.fail_next(&[Fault::Conflict; 1_000]);
        let error = store.create(record("u", None)).await.unwrap_err();
        assert!(error.is_retryable(), "creating ends too: {error}");
    });
}

#[test]
fn the_backend_is_handed_the_time_remaining_and_never_more() {
    block_on(async {
        let backend = backend();
        let store = CasStore::new(backend.clone());
        store.create(record("t", Some(1_000))).await.unwrap();
        for (write, millis) in [(2_u32, 0), (3, 1), (4, 600), (5, 999), (6, 1_000)] {
            let updated = update(&store, millis, write.into(), progress(write.into(), at(millis))).await;
            assert!(updated.unwrap().is_some(), "{millis} ms");
        }
        assert!(
            update(&store, 1_001, 7, progress(7.0, at(1_001)))
                .await
                .unwrap()
                .is_none()
        );
        let millis = |ttls: &[u64]| {
            ttls.iter()
                .map(|ttl| Some(Duration::from_millis(*ttl)))
                .collect::<Vec<_>>()
        };
        assert_eq!(*backend.ttls.lock().unwrap(), millis(&[1_000, 1_000, 999, 400, 1, 1]));

        backend.ttls.lock().unwrap().clear();
        store.create(record("unlimited", None)).await.unwrap();
        assert_eq!(*backend.ttls.lock().unwrap(), [None]);
    });
}

#[test]
fn a_backend_that_expires_by_itself_gets_in_nobodys_way() {
    block_on(async {
        let backend = backend();
        backend.set_clock(at(0));
        let store = CasStore::new(backend.clone());
        store.create(record("t", Some(1_000))).await.unwrap();
        backend.set_clock(at(1_000));
        assert!(store.get(&TaskId::new("t"), at(1_000)).await.unwrap().is_some());
        backend.set_clock(at(1_001));
        // A caller whose clock is behind does not bring it back, and what was seen does not either.
        assert!(update(&store, 900, 2, progress(1.0, at(900))).await.unwrap().is_none());
        let mut anew = record("t", None);
        anew.last_write = Some(WriteId::new(3));
        assert_eq!(store.create(anew).await.unwrap().version, 1);
    });
}

#[test]
fn an_expired_record_makes_room_in_one_conditional_write() {
    block_on(async {
        let backend = backend();
        let store = CasStore::new(backend.clone());
        store.create(record("t", Some(1_000))).await.unwrap();
        let mut next = record("t", Some(1_000));
        (next.created_at, next.last_write) = (at(1_001), Some(WriteId::new(2)));
        let before = backend.trips.load(SeqCst);
        // Two creations at once: one takes the place.
        let mut third = next.clone();
        third.last_write = Some(WriteId::new(3));
        let (won, lost) = (store.create(next).await, store.create(third).await);
        assert_eq!(won.unwrap().last_write, Some(WriteId::new(2)));
        assert!(matches!(lost, Err(StoreError::AlreadyExists { .. })));
        assert_eq!(backend.trips.load(SeqCst) - before, 3 + 2);
    });
}

#[test]
fn what_cannot_be_read_is_left_alone_and_named() {
    block_on(async {
        let backend = backend();
        let store = CasStore::new(backend.clone());
        let newer = record("t", Some(0))
            .to_json()
            .unwrap()
            .replace(r#""format":1"#, r#""format":3"#);
        for value in [newer.as_bytes(), b"{", b"\xff"] {
            backend.plant("mcp-tasks:t", value);
            store.create(record("expired", Some(0))).await.unwrap();
            store.create(record("live", Some(10_000))).await.ok();
            let outcomes = [
                store.get(&TaskId::new("t"), at(9)).await.map(|_| ()),
                update(&store, 9, 2, progress(1.0, at(9))).await.map(|_| ()),
                store.create(record("t", None)).await.map(|_| ()),
            ];
            for outcome in outcomes {
                let error = outcome.unwrap_err();
                assert!(matches!(error, StoreError::Unreadable { .. }), "{error}");
                assert!(!error.is_retryable());
            }
            assert_eq!(store.as_sweep().unwrap().sweep(at(9)).await.unwrap(), 1);
            let named = std::mem::take(&mut *backend.unreadable.lock().unwrap());
            assert!(named.len() == 1 && named[0].starts_with("mcp-tasks:t: "), "{named:?}");
            assert_eq!(backend.raw("mcp-tasks:t").as_deref(), Some(value));
        }
        store.delete(&TaskId::new("t")).await.unwrap();
        assert_eq!(backend.keys(), ["mcp-tasks:live"]);
    });
}

#[test]
fn a_sweep_goes_through_all_pages_and_minds_the_prefix() {
    block_on(async {
        let backend = backend();
        let (ours, theirs) = (
            CasStore::new(backend.clone()),
            CasStore::new(backend.clone()).with_prefix("theirs:"),
        );
        for n in 0..500 {
            ours.create(record(&format!("t{n}"), Some(n % 2))).await.unwrap();
        }
        theirs.create(record("t", Some(0))).await.unwrap();
        assert_eq!(ours.as_sweep().unwrap().sweep(at(1)).await.unwrap(), 250);
        assert_eq!(ours.as_sweep().unwrap().sweep(at(2)).await.unwrap(), 250);
        assert_eq!(backend.keys(), ["theirs:t"]);
        assert!(format!("{theirs:?}").contains("theirs:"));
    });
}

#[test]
fn a_write_that_brings_the_deadline_forward_is_acknowledged_though_it_ends_the_record() {
    block_on(async {
        let backend = backend();
        let store = CasStore::new(backend.clone());
        store.create(record("t", Some(60_000))).await.unwrap();
        backend.fail_next(&[Fault::AppliedThenConflict]);
        let shorten: Mutation = Arc::new(|record| record.extended(1, at(500), Some(Duration::from_millis(100))));
        let updated = update(&store, 500, 2, shorten).await.unwrap().unwrap();
        assert_eq!((updated.applied, updated.record.ttl_ms), (true, Some(100)));
        assert!(store.get(&TaskId::new("t"), at(500)).await.unwrap().is_none());
    });
}
