//! The cases in which operations race each other, see [`Spawn`] for how.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use super::feed::next;
use super::records::{HOUR, asking, at, raw, record};
use super::{Case, Mutation, Spawn, Work, changing, is_collision};
use crate::{Claim, StoreError, TaskChange, TaskId, TaskRecord, TaskStatus, TaskStore, Updated, WriteId};

/// Enough that every pair of operations meets, and few enough for a store on a network.
const WORKERS: u32 = 8;
const ROUNDS: u32 = 25;

/// As many as a client that repeats itself, or a fleet of them, brings about at once.
const CROWD: u32 = 64;

/// Runs one piece of work per worker, all at once, and returns what each made of it.
async fn race<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    spawn: Spawn,
    work: impl Fn(u32) -> F,
) -> Vec<T> {
    race_of(WORKERS, spawn, work).await
}

async fn race_of<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    workers: u32,
    spawn: Spawn,
    work: impl Fn(u32) -> F,
) -> Vec<T> {
    let outcomes = Arc::new(Mutex::new(Vec::new()));
    let mut running: Vec<Option<Work>> = (0..workers)
        .map(|worker| {
            let (outcomes, work) = (outcomes.clone(), work(worker));
            Some(spawn(Box::pin(async move {
                let outcome = work.await;
                outcomes.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
            })))
        })
        .collect();
    std::future::poll_fn(|context| {
        for slot in &mut running {
            if let Some(work) = slot
                && work.as_mut().poll(context).is_ready()
            {
                *slot = None;
            }
        }
        if running.iter().all(Option::is_none) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    let outcomes = std::mem::take(&mut *outcomes.lock().unwrap_or_else(PoisonError::into_inner));
    assert_eq!(outcomes.len(), workers as usize, "all work ends");
    outcomes
}

/// Updates until the store has taken it, as the runtime does. Contention is the store's to solve; only an outage is
/// reported to the caller, who repeats the same write.
async fn insist(store: &dyn TaskStore, id: &TaskId, write: u128, mutation: Mutation) -> Option<Updated> {
    for _ in 0..1_000 {
        match store.update(id, at(1), WriteId::new(write), mutation.clone()).await {
            Err(error) if error.is_retryable() => {}
            outcome => return outcome.expect("update answers"),
        }
    }
    panic!("the store was unavailable a thousand times");
}

/// A write id of its own for every worker and round.
fn write_id(worker: u32, round: u32) -> u128 {
    (u128::from(worker) + 1) * 1_000_000 + u128::from(round)
}

/// No update is lost, none is applied twice, and versions count them.
pub async fn concurrent_updates_are_all_applied(store: Arc<dyn TaskStore>, spawn: Spawn) {
    let id = Case::new(&*store, "increments").id(0).await;
    store
        .create(record(&id, Some(HOUR)))
        .await
        .expect("create takes a free id");
    let versions = race(spawn, |worker| {
        let (store, id) = (store.clone(), id.clone());
        async move {
            let mut versions = Vec::new();
            for round in 0..ROUNDS {
                let increment = changing(|record| {
                    record.progress = Some(record.progress.unwrap_or_default() + 1.0);
                });
                let updated = insist(&*store, &id, write_id(worker, round), increment).await;
                versions.push(updated.expect("the record is there").record.version);
            }
            versions
        }
    })
    .await;
    let total = WORKERS * ROUNDS;
    let found = store
        .get(&id, at(1))
        .await
        .expect("get answers")
        .expect("the record is there");
    assert_eq!(found.progress, Some(f64::from(total)), "every increment is there, once");
    assert_eq!(found.version, u64::from(total) + 1, "one version a write");
    assert!(
        versions.iter().all(|mine| mine.is_sorted()),
        "each worker sees versions rise"
    );
    let mut all: Vec<u64> = versions.into_iter().flatten().collect();
    all.sort_unstable();
    assert!(
        all.into_iter().eq(2..=u64::from(total) + 1),
        "no two writes made one version"
    );
}

/// Completing against cancelling: the first wins, everybody agrees on it, and nothing changes after.
pub async fn of_concurrent_ends_the_first_is_final(store: Arc<dyn TaskStore>, spawn: Spawn) {
    for number in 0..ROUNDS {
        let id = Case::new(&*store, "ends").id(number).await;
        store
            .create(record(&id, Some(HOUR)))
            .await
            .expect("create takes a free id");
        let outcomes = race(spawn, |worker| {
            let (store, id) = (store.clone(), id.clone());
            async move {
                let mutation: Mutation = Arc::new(move |record| {
                    let now = at(u64::from(worker));
                    match worker % 3 {
                        0 => record.cancelled(now),
                        1 => record.completed(1, now, &raw(&format!(r#"{{"by":{worker}}}"#)), None),
                        _ => record.failed(1, now, &raw(r#"{"code":-32603}"#), "no"),
                    }
                });
                insist(&*store, &id, write_id(worker, 0), mutation).await
            }
        })
        .await;
        let end = store
            .get(&id, at(1))
            .await
            .expect("get answers")
            .expect("the record is there");
        assert_eq!(end.version, 2, "one end was written");
        let outcomes: Vec<Updated> = outcomes.into_iter().flatten().collect();
        assert_eq!(
            outcomes.iter().filter(|outcome| outcome.applied).count(),
            1,
            "by one worker"
        );
        for outcome in outcomes {
            assert_eq!(outcome.record, end, "nobody sees another end");
        }
        assert_eq!(end.status == TaskStatus::Completed, end.result.is_some());
    }
}

/// A working record with one open question, `q`.
fn parked(id: &TaskId) -> TaskRecord {
    let mut record = record(id, Some(HOUR));
    record.status = TaskStatus::InputRequired;
    record.open = asking().open;
    record
}

/// A thousand times a cancellation against a completion, several tasks at a time: one of the two is written, both callers
/// are shown it, and what it left stays as it is.
pub async fn of_a_thousand_races_of_cancel_against_complete_the_first_wins(store: Arc<dyn TaskStore>, spawn: Spawn) {
    const AT_ONCE: u32 = 20;
    const TIMES: u32 = 1_000 / AT_ONCE;
    let mut ids = Vec::new();
    for number in 0..AT_ONCE {
        ids.push(Case::new(&*store, "cancel-complete").id(number).await);
    }
    let ids: Arc<[TaskId]> = ids.into();
    for round in 0..TIMES {
        let outcomes = race_of(AT_ONCE, spawn, |task| {
            let (store, ids) = (store.clone(), ids.clone());
            async move {
                let id = &ids[task as usize];
                let mut first = record(id, Some(HOUR));
                first.last_write = Some(WriteId::new(write_id(task, 2 * round)));
                store.create(first).await.expect("create takes a free id");
            }
        });
        assert_eq!(outcomes.await.len(), AT_ONCE as usize);
        let ends = race_of(2 * AT_ONCE, spawn, |worker| {
            let (store, ids) = (store.clone(), ids.clone());
            async move {
                let id = &ids[(worker / 2) as usize];
                let cancels = (worker + round) % 2 == 0;
                let mutation: Mutation = Arc::new(move |record| {
                    if cancels {
                        record.cancelled(at(1))
                    } else {
                        record.completed(1, at(2), &raw(r#"{"content":[]}"#), None)
                    }
                });
                let write = write_id(AT_ONCE + worker, round);
                (
                    worker / 2,
                    insist(&*store, id, write, mutation).await.expect("it is there"),
                )
            }
        });
        let ends = ends.await;
        for (task, id) in (0..).zip(ids.iter()) {
            let end = store.get(id, at(3)).await.expect("get answers").expect("it is there");
            assert!(end.status.is_terminal() && end.version == 2, "one end is written");
            assert_eq!(
                end.status == TaskStatus::Completed,
                end.result.is_some(),
                "and it is whole"
            );
            let both: Vec<_> = ends.iter().filter(|(of, _)| *of == task).map(|(_, end)| end).collect();
            assert_eq!(
                both.iter().filter(|updated| updated.applied).count(),
                1,
                "by one caller"
            );
            assert!(both.iter().all(|updated| updated.record == end), "and shown to both");
            store.delete(id).await.expect("delete removes");
        }
    }
}

/// Of many answers to one question, up to 64, one resumes the task: exactly one caller may start the next execution.
pub async fn of_concurrent_answers_one_resumes_the_task(store: Arc<dyn TaskStore>, spawn: Spawn) {
    for number in 0..ROUNDS {
        let id = Case::new(&*store, "answers").id(number).await;
        store.create(parked(&id)).await.expect("create takes a free id");
        let crowd = if number == 0 { CROWD } else { WORKERS };
        let outcomes = race_of(crowd, spawn, |worker| {
            let (store, id) = (store.clone(), id.clone());
            async move {
                let mutation: Mutation = Arc::new(move |record| {
                    let answer = raw(&format!(r#"{{"roots":[{worker}]}}"#));
                    let responses = BTreeMap::from([("q".to_owned(), answer)]);
                    let claim = Claim::new(format!("node-{worker}").into(), at(30_000));
                    record.answered(at(1), &responses, &record.client_capabilities, &claim)
                });
                (worker, insist(&*store, &id, write_id(worker, 0), mutation).await)
            }
        })
        .await;
        let resumed = store.get(&id, at(1)).await.expect("get answers").expect("it is there");
        assert_eq!((resumed.status, resumed.execution.epoch), (TaskStatus::Working, 2));
        let mut winners = outcomes
            .into_iter()
            .filter(|(_, outcome)| outcome.as_ref().is_some_and(|outcome| outcome.applied));
        let (winner, _) = winners.next().expect("one answer is taken");
        assert!(winners.next().is_none(), "and one only");
        assert_eq!(resumed.execution.node.as_deref(), Some(&*format!("node-{winner}")));
        let recorded = resumed.ledger.entries()[0].response.get();
        assert_eq!(
            recorded,
            format!(r#"{{"roots":[{winner}]}}"#),
            "its own answer is recorded"
        );
    }
}

/// An id is created once.
pub async fn of_concurrent_creates_one_wins(store: Arc<dyn TaskStore>, spawn: Spawn) {
    for number in 0..ROUNDS {
        let id = Case::new(&*store, "creates").id(number).await;
        let outcomes = race(spawn, |worker| {
            let (store, id) = (store.clone(), id.clone());
            async move {
                let mut record = record(&id, Some(HOUR));
                record.last_write = Some(WriteId::new(write_id(worker, 0)));
                store.create(record).await
            }
        })
        .await;
        let won: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).collect();
        assert_eq!(won.len(), 1, "one creation wins");
        assert!(outcomes.iter().all(|outcome| outcome.is_ok() || is_collision(outcome)));
        let found = store.get(&id, at(1)).await.expect("get answers");
        assert_eq!(found.as_ref(), won.first().copied(), "and the winner's record is there");
    }
}

/// Repeating a write while the first attempt is still on its way applies it once.
pub async fn concurrent_repeats_of_one_write_apply_once(store: Arc<dyn TaskStore>, spawn: Spawn) {
    for number in 0..ROUNDS {
        let id = Case::new(&*store, "repeats").id(number).await;
        store
            .create(record(&id, Some(HOUR)))
            .await
            .expect("create takes a free id");
        let outcomes = race(spawn, |_| {
            let (store, id) = (store.clone(), id.clone());
            async move {
                let increment = changing(|record| {
                    record.progress = Some(record.progress.unwrap_or_default() + 1.0);
                });
                insist(&*store, &id, 2, increment).await
            }
        })
        .await;
        let found = store.get(&id, at(1)).await.expect("get answers").expect("it is there");
        assert_eq!((found.progress, found.version), (Some(1.0), 2));
        for outcome in outcomes {
            let outcome = outcome.expect("the record is there");
            assert!(outcome.applied && outcome.record == found, "all learn of the one write");
        }
    }
}

/// A reader beside writers never sees half a write, and never an older version after a newer one.
pub async fn readers_see_whole_versions_that_only_rise(store: Arc<dyn TaskStore>, spawn: Spawn) {
    let id = Case::new(&*store, "readers").id(0).await;
    let mut first = record(&id, Some(HOUR));
    first.progress = Some(1.0);
    first.status_message = Some("1".into());
    store.create(first).await.expect("create takes a free id");
    let seen: Vec<Result<(), StoreError>> = race(spawn, |worker| {
        let (store, id) = (store.clone(), id.clone());
        async move {
            let mut newest = 0;
            for round in 0..ROUNDS {
                if worker % 2 == 0 {
                    let write = changing(|record| {
                        let next = record.version + 1;
                        record.poll_interval_ms = next;
                        record.status_message = Some(next.to_string().into());
                        record.progress = record.progress.map(|progress| progress + 1.0);
                    });
                    insist(&*store, &id, write_id(worker, round), write).await;
                } else {
                    let found = store.get(&id, at(1)).await?.expect("the record is there");
                    assert!(found.version >= newest, "versions only rise");
                    newest = found.version;
                    let words = found.status_message.as_deref();
                    assert_eq!(words, Some(&*newest.to_string()), "a version is whole");
                    #[allow(clippy::cast_precision_loss, reason = "a few hundred")]
                    let count = newest as f64;
                    assert_eq!(found.progress, Some(count), "a version is whole");
                }
            }
            Ok(())
        }
    })
    .await;
    assert!(seen.iter().all(Result::is_ok), "get answers: {seen:?}");
}

/// While others write, every version that a feed names can be seen by then, and the last one is named. Stores without a
/// feed pass.
pub async fn a_feed_is_never_ahead_of_the_store_nor_silent(store: Arc<dyn TaskStore>, spawn: Spawn) {
    let Some(feed) = store.as_change_feed() else { return };
    let id = Case::new(&*store, "feed-race").id(0).await;
    store
        .create(record(&id, Some(HOUR)))
        .await
        .expect("create takes a free id");
    let mut changes = feed.changes();
    assert_eq!(next(&mut changes).await, TaskChange::Resumed);
    let last = u64::from((WORKERS - 1) * ROUNDS) + 1;
    let changes = Arc::new(Mutex::new(Some(changes)));
    race(spawn, |worker| {
        let (store, id, changes) = (store.clone(), id.clone(), changes.clone());
        async move {
            if worker > 0 {
                for round in 0..ROUNDS {
                    let write = changing(|record| record.poll_interval_ms += 1);
                    insist(&*store, &id, write_id(worker, round), write).await;
                }
                return;
            }
            let changes = changes.lock().unwrap_or_else(PoisonError::into_inner).take();
            let mut changes = changes.expect("one worker listens");
            let mut seen = 0;
            while seen < last {
                let told = match next(&mut changes).await {
                    TaskChange::Changed { id: of, version } if of == id => version.unwrap_or_default(),
                    TaskChange::Resumed => 0,
                    TaskChange::Changed { .. } | TaskChange::Unclaimed { .. } => continue,
                };
                let found = store.get(&id, at(1)).await.expect("get answers").expect("it is there");
                assert!(
                    found.version >= told,
                    "version {told} was reported before it can be seen"
                );
                seen = found.version;
            }
        }
    })
    .await;
    store.delete(&id).await.expect("delete removes");
}
