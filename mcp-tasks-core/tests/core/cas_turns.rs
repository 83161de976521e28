//! Writers of one process to one record line up, and nobody in line keeps another for long.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_tasks_core::{
    CasStore, Change, ClientCapabilities, Json, Mutation, StoreError, TaskId, TaskRecord, TaskStore, Timestamp,
    Updated, WriteId,
};

use super::cas_backend::{Fault, MemoryBackend, backend};
use super::stores::block_on;

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

type Store = CasStore<Arc<MemoryBackend>>;
type Update<'a> = Pin<Box<dyn Future<Output = Result<Option<Updated>, StoreError>> + Send + 'a>>;

fn record(id: &str) -> TaskRecord {
    let empty = || serde_json::from_str::<Json>("{}").unwrap();
    let capabilities = ClientCapabilities::new(empty());
    let interval = Duration::from_secs(2);
    TaskRecord::new(
        TaskId::new(id),
        "encode".into(),
        empty(),
        capabilities,
        NOW,
        None,
        interval,
    )
}

fn count_up() -> Mutation {
    Arc::new(|record| {
        let mut next = record.clone();
        next.poll_interval_ms += 1;
        Change::Write(Box::new(next))
    })
}

fn update<'a>(store: &'a Store, id: &'a TaskId, write: u128) -> Update<'a> {
    store.update(id, NOW, WriteId::new(write), count_up())
}

/// Runs all of them at once, each a poll at a time.
async fn together(updates: Vec<Update<'_>>) -> Vec<Updated> {
    let mut running: Vec<_> = updates.into_iter().map(Some).collect();
    let mut done = Vec::new();
    std::future::poll_fn(|context| {
        for place in &mut running {
            let Some(update) = place else { continue };
            if let Poll::Ready(updated) = update.as_mut().poll(context) {
                *place = None;
                done.push(updated.unwrap().expect("it is there"));
            }
        }
        if running.iter().all(Option::is_none) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    done
}

fn poll_once(update: &mut Update<'_>) -> bool {
    update.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

async fn interval(store: &Store, id: &TaskId) -> u64 {
    store.get(id, NOW).await.unwrap().expect("it is there").poll_interval_ms
}

#[test]
fn writers_that_come_at_once_pay_one_round_trip_each() {
    block_on(async {
        let backend = backend();
        let store = CasStore::new(backend.clone());
        let ids = [TaskId::new("t"), TaskId::new("u")];
        for id in &ids {
            store.create(record(id.as_str())).await.unwrap();
        }
        let before = backend.trips.load(SeqCst);
        let updates = (0..64).flat_map(|n| ids.iter().zip([100 + n, 200 + n]));
        let done = together(updates.map(|(id, write)| update(&store, id, write)).collect()).await;
        assert!(done.iter().all(|updated| updated.applied));
        assert_eq!(backend.trips.load(SeqCst) - before, 128);
        assert_eq!(backend.conflicts.load(SeqCst), 0);
        for id in &ids {
            assert_eq!(interval(&store, id).await, 2_064);
        }
    });
}

#[test]
fn a_writer_that_hangs_keeps_the_others_no_longer_than_a_second() {
    block_on(async {
        let backend = backend();
        let store = CasStore::new(backend.clone());
        let id = TaskId::new("t");
        store.create(record("t")).await.unwrap();
        // Begun, and then nobody looks at it: its database does not answer.
        let mut hanging = update(&store, &id, 2);
        assert!(!poll_once(&mut hanging));

        let done = together(vec![update(&store, &id, 3), update(&store, &id, 4)]).await;
        assert!(done.iter().all(|updated| updated.applied));
        let longest = backend.pauses.lock().unwrap().iter().max().copied();
        assert_eq!(longest, Some(Duration::from_secs(1)));
        // It ends well for that one too.
        assert!(hanging.await.unwrap().unwrap().applied);
        assert_eq!(interval(&store, &id).await, 2_003);
    });
}

#[test]
fn a_writer_that_gives_up_lets_the_next_one_go() {
    block_on(async {
        let backend = backend();
        let store = CasStore::new(backend.clone());
        let id = TaskId::new("t");
        store.create(record("t")).await.unwrap();
        let (mut first, mut second, mut third) =
            (update(&store, &id, 2), update(&store, &id, 3), update(&store, &id, 4));
        for update in [&mut first, &mut second, &mut third] {
            assert!(!poll_once(update));
        }
        // Dropped while it writes, dropped while it waits, and one that fails.
        drop(second);
        drop(first);
        assert!(third.await.unwrap().unwrap().applied);
        backend.fail_next(&[Fault::FailedBefore]);
        let (failing, next) = (update(&store, &id, 5), update(&store, &id, 6));
        assert!(failing.await.unwrap_err().is_retryable());
        let asked = backend.pauses.lock().unwrap().len();
        assert!(next.await.unwrap().unwrap().applied);
        assert_eq!(
            backend.pauses.lock().unwrap().len(),
            asked,
            "nobody is in line any more"
        );
    });
}
