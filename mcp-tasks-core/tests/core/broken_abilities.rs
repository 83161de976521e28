//! What the contract suite says of the abilities a store may have besides, sound and broken.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use mcp_tasks_core::store::contract::{self, parallel};
use mcp_tasks_core::{
    ChangeFeed, ChangeHub, ChangeStream, ExpiredLeases, MemoryStore, Mutation, StoreFuture, TaskChange, TaskId,
    TaskRecord, TaskStore, Timestamp, Updated, WriteId,
};

use super::stores::{block_on, give_way};

/// How an ability breaks its contract.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Flaw {
    /// It does not.
    None,
    /// A listener is not told to look at what it missed.
    BeginsWithoutAWord,
    /// A write is reported before it takes place.
    ReportsEarly,
    /// Updates are not reported.
    ForgetsUpdates,
    /// Deletions are not reported.
    ForgetsDeletes,
    /// A new listener takes the place of the one before.
    HearsOne,
    /// At its last instant a lease is over.
    LeasesEndEarly,
    /// Expired tasks are found too.
    FindsTheExpired,
    /// Tasks that have ended or wait are found too.
    FindsWhatDoesNotWork,
    /// The limit is not looked at.
    ForgetsTheLimit,
}

/// The memory store with the abilities of one that several nodes share.
#[derive(Debug)]
struct Able {
    inner: MemoryStore,
    hub: Mutex<ChangeHub>,
    ids: Mutex<BTreeSet<TaskId>>,
    flaw: Flaw,
}

impl Able {
    fn new(flaw: Flaw) -> Self {
        Self {
            inner: MemoryStore::new(),
            hub: Mutex::default(),
            ids: Mutex::default(),
            flaw,
        }
    }

    fn tell(&self, id: &TaskId, version: Option<u64>) {
        let id = id.clone();
        self.hub.lock().unwrap().send(TaskChange::Changed { id, version });
    }
}

impl TaskStore for Able {
    fn create(&self, record: TaskRecord) -> StoreFuture<'_, Arc<TaskRecord>> {
        Box::pin(async move {
            let created = self.inner.create(record).await?;
            self.ids.lock().unwrap().insert(created.task_id.clone());
            self.tell(&created.task_id, Some(created.version));
            Ok(created)
        })
    }

    fn update<'a>(
        &'a self,
        id: &'a TaskId,
        now: Timestamp,
        write: WriteId,
        mutation: Mutation,
    ) -> StoreFuture<'a, Option<Updated>> {
        Box::pin(async move {
            if self.flaw == Flaw::ReportsEarly
                && let Some(present) = self.inner.get(id, now).await?
            {
                self.tell(id, Some(present.version + 1));
                give_way().await;
            }
            let updated = self.inner.update(id, now, write, mutation).await?;
            if let Some(updated) = updated.as_ref().filter(|updated| updated.applied)
                && self.flaw != Flaw::ForgetsUpdates
            {
                self.tell(id, Some(updated.record.version));
                give_way().await;
            }
            Ok(updated)
        })
    }

    fn delete<'a>(&'a self, id: &'a TaskId) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            self.inner.delete(id).await?;
            if self.flaw != Flaw::ForgetsDeletes {
                self.tell(id, None);
            }
            Ok(())
        })
    }

    mcp_tasks_core::delegate_task_store! { inner => get, as_sweep }

    fn as_expired_leases(&self) -> Option<&dyn ExpiredLeases> {
        Some(self)
    }

    fn as_change_feed(&self) -> Option<&dyn ChangeFeed> {
        Some(self)
    }
}

impl ChangeFeed for Able {
    fn changes(&self) -> ChangeStream {
        let mut hub = self.hub.lock().unwrap();
        if self.flaw == Flaw::HearsOne {
            std::mem::forget(std::mem::take(&mut *hub));
        }
        let mut changes = hub.listen();
        if self.flaw == Flaw::BeginsWithoutAWord {
            let first = changes.as_mut().poll_next(&mut Context::from_waker(Waker::noop()));
            assert_eq!(first, Poll::Ready(Some(TaskChange::Resumed)));
        }
        changes
    }
}

impl ExpiredLeases for Able {
    fn expired_leases(&self, now: Timestamp, limit: usize) -> StoreFuture<'_, Vec<Arc<TaskRecord>>> {
        let ids: Vec<_> = self.ids.lock().unwrap().iter().cloned().collect();
        Box::pin(async move {
            let seen_at = match self.flaw {
                Flaw::FindsTheExpired => Timestamp::default(),
                _ => now,
            };
            let mut found = Vec::new();
            for id in ids {
                let Some(record) = self.inner.get(&id, seen_at).await? else {
                    continue;
                };
                let until = record.execution.lease_until;
                if match self.flaw {
                    Flaw::LeasesEndEarly => {
                        record.is_owned_by(record.execution.epoch) && until.is_some_and(|u| now >= u)
                    }
                    Flaw::FindsWhatDoesNotWork => until.is_some_and(|until| now > until),
                    _ => record.is_abandoned(now),
                } {
                    found.push(record);
                }
            }
            if self.flaw != Flaw::ForgetsTheLimit {
                found.truncate(limit);
            }
            Ok(found)
        })
    }
}

mcp_tasks_core::store_contract! { able, block_on = block_on, async { Able::new(Flaw::None) } }

/// How many polls a case gets. In memory everything goes on at once, so what is not done by then waits for ever.
const POLLS: u32 = 10_000;

/// Whether the case passes; it does not if it panics or hangs.
fn passes(case: impl Future<Output = ()>) -> bool {
    let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut case = pin!(case);
        (0..POLLS).any(|_| case.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready())
    }));
    polled.unwrap_or(false)
}

#[test]
fn every_flaw_of_an_ability_is_caught_by_the_case_that_names_its_rule() {
    macro_rules! caught {
        ($($flaw:ident by $case:ident;)+) => {$(
            assert!(passes(contract::$case(&Able::new(Flaw::None))), stringify!($case));
            assert!(
                !passes(contract::$case(&Able::new(Flaw::$flaw))),
                concat!(stringify!($flaw), " passes ", stringify!($case)),
            );
        )+};
    }
    caught! {
        BeginsWithoutAWord by a_feed_begins_by_telling_its_reader_to_look;
        ForgetsUpdates by a_feed_reports_every_kind_of_change_to_every_listener;
        ForgetsDeletes by a_feed_reports_every_kind_of_change_to_every_listener;
        HearsOne by a_feed_reports_every_kind_of_change_to_every_listener;
        ForgetsUpdates by a_feed_reports_what_can_be_seen;
        LeasesEndEarly by expired_leases_finds_what_is_abandoned_and_nothing_else;
        FindsTheExpired by expired_leases_finds_what_is_abandoned_and_nothing_else;
        FindsWhatDoesNotWork by expired_leases_finds_what_is_abandoned_and_nothing_else;
        ForgetsTheLimit by expired_leases_finds_what_is_abandoned_and_nothing_else;
    }
    let race =
        |flaw| parallel::a_feed_is_never_ahead_of_the_store_nor_silent(Arc::new(Able::new(flaw)), contract::in_place);
    assert!(passes(race(Flaw::None)));
    assert!(!passes(race(Flaw::ReportsEarly)), "a feed that is ahead passes");
    assert!(!passes(race(Flaw::ForgetsUpdates)), "a feed that is silent passes");
}
