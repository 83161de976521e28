//! What the contract suite says of stores that break the contract: a suite that lets them pass is worth nothing.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_tasks_core::store::contract::{self, parallel};
use mcp_tasks_core::{
    Change, ChangeFeed, ChangeHub, ChangeStream, ExpiredLeases, Json, MemoryStore, Mutation, StoreFuture, Sweep,
    TaskChange, TaskId, TaskRecord, TaskStore, Timestamp, Updated, WriteId,
};

use super::stores::{block_on, give_way};

/// How a store breaks the contract.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Flaw {
    /// It does not.
    None,
    /// The deadline itself is too late already.
    EndsEarly,
    /// Records live a millisecond too long.
    EndsLate,
    /// Only reading looks at the deadline.
    UpdatesTheExpired,
    /// A write moves the deadline along.
    Renews,
    /// Creating replaces.
    Replaces,
    /// A repeated write is applied again.
    AppliesAgain,
    /// What is kept is written all the same.
    WritesWhatIsKept,
    /// Reading and writing are two steps.
    LosesUpdates,
    /// Content is decoded and encoded.
    DecodesContent,
    /// A NUL is dropped, as some databases cannot hold one.
    DropsNul,
    /// An update of what is not there creates it.
    Resurrects,
    /// The sweep takes what still lives.
    SweepsTheLiving,
    /// The sweep miscounts.
    Miscounts,
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

/// The memory store with the abilities of one that several nodes share, and a flaw.
#[derive(Debug)]
struct Broken {
    inner: MemoryStore,
    hub: Mutex<ChangeHub>,
    ids: Mutex<BTreeSet<TaskId>>,
    flaw: Flaw,
}

impl Broken {
    fn new(flaw: Flaw) -> Arc<Self> {
        Arc::new(Self {
            inner: MemoryStore::new(),
            hub: Mutex::default(),
            ids: Mutex::default(),
            flaw,
        })
    }

    fn clock(&self, now: Timestamp) -> Timestamp {
        match self.flaw {
            Flaw::EndsEarly => now.saturating_add(Duration::from_millis(1)),
            Flaw::EndsLate => Timestamp::from_millis(now.as_millis().saturating_sub(1)),
            _ => now,
        }
    }

    fn spoilt(&self, mut record: TaskRecord) -> TaskRecord {
        let json = |text: &str| serde_json::from_str::<Json>(text).unwrap();
        match self.flaw {
            Flaw::DecodesContent => {
                let value: serde_json::Value = record.arguments.decode().unwrap_or_default();
                record.arguments = json(&value.to_string());
            }
            Flaw::DropsNul => {
                record.arguments = json(&record.arguments.get().replace("\\u0000", ""));
            }
            _ => {}
        }
        record
    }

    fn tell(&self, id: &TaskId, version: Option<u64>) {
        let id = id.clone();
        self.hub.lock().unwrap().send(TaskChange::Changed { id, version });
    }
}

impl TaskStore for Broken {
    fn create(&self, record: TaskRecord) -> StoreFuture<'_, Arc<TaskRecord>> {
        Box::pin(async move {
            if self.flaw == Flaw::Replaces {
                self.inner.delete(&record.task_id).await?;
            }
            let created = self.inner.create(self.spoilt(record)).await?;
            self.ids.lock().unwrap().insert(created.task_id.clone());
            self.tell(&created.task_id, Some(created.version));
            Ok(created)
        })
    }

    fn get<'a>(&'a self, id: &'a TaskId, now: Timestamp) -> StoreFuture<'a, Option<Arc<TaskRecord>>> {
        self.inner.get(id, self.clock(now))
    }

    fn update<'a>(
        &'a self,
        id: &'a TaskId,
        now: Timestamp,
        write: WriteId,
        mutation: Mutation,
    ) -> StoreFuture<'a, Option<Updated>> {
        Box::pin(async move {
            let now = match self.flaw {
                Flaw::UpdatesTheExpired => Timestamp::default(),
                _ => self.clock(now),
            };
            let present = self.inner.get(id, now).await?;
            let mutation: Mutation = match self.flaw {
                Flaw::WritesWhatIsKept => Arc::new(move |record| match mutation(record) {
                    Change::Keep => Change::Write(Box::new(record.clone())),
                    change => change,
                }),
                Flaw::Renews => Arc::new(move |record| match mutation(record) {
                    Change::Write(mut next) => {
                        let age = now.saturating_since(next.created_at);
                        let age = u64::try_from(age.as_millis()).unwrap_or_default();
                        next.ttl_ms = next.ttl_ms.map(|ttl| ttl + age);
                        Change::Write(next)
                    }
                    change => change,
                }),
                Flaw::LosesUpdates => {
                    let Some(seen) = present.clone() else {
                        return Ok(None);
                    };
                    give_way().await;
                    Arc::new(move |_| mutation(&seen))
                }
                _ => mutation,
            };
            match (self.flaw, present) {
                (Flaw::AppliesAgain, Some(present)) if present.last_write == Some(write) => {
                    self.inner.update(id, now, WriteId::new(u128::MAX), keep_all()).await?;
                }
                (Flaw::ReportsEarly, Some(present)) => {
                    self.tell(id, Some(present.version + 1));
                    give_way().await;
                }
                _ => {}
            }
            let updated = self.inner.update(id, now, write, mutation).await?;
            if let Some(updated) = updated.as_ref().filter(|updated| updated.applied)
                && self.flaw != Flaw::ForgetsUpdates
            {
                self.tell(id, Some(updated.record.version));
                give_way().await;
            }
            if updated.is_none() && self.flaw == Flaw::Resurrects {
                let again = TaskRecord::new(
                    id.clone(),
                    "encode".into(),
                    serde_json::from_str("{}").unwrap(),
                    mcp_tasks_core::ClientCapabilities::new(serde_json::from_str("{}").unwrap()),
                    now,
                    None,
                    Duration::from_secs(1),
                );
                self.inner.create(again).await?;
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

    fn as_sweep(&self) -> Option<&dyn Sweep> {
        Some(self)
    }

    fn as_expired_leases(&self) -> Option<&dyn ExpiredLeases> {
        Some(self)
    }

    fn as_change_feed(&self) -> Option<&dyn ChangeFeed> {
        Some(self)
    }
}

impl Sweep for Broken {
    fn sweep(&self, now: Timestamp) -> StoreFuture<'_, u64> {
        let (extra, shift) = match self.flaw {
            Flaw::Miscounts => (1, 0),
            Flaw::SweepsTheLiving => (0, 1),
            _ => (0, 0),
        };
        Box::pin(async move {
            let now = now.saturating_add(Duration::from_millis(shift));
            Ok(self.inner.sweep(now).await? + extra)
        })
    }
}

impl ChangeFeed for Broken {
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

impl ExpiredLeases for Broken {
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

/// Writes the record as it is.
fn keep_all() -> Mutation {
    Arc::new(|record| Change::Write(Box::new(record.clone())))
}

mcp_tasks_core::store_contract! { sound, block_on = block_on, async { Broken::new(Flaw::None) } }

/// How many polls a case gets. In memory everything goes on at once, so what is not done by then waits for ever.
const POLLS: u32 = 100_000;

/// Whether the case passes; it does not if it panics or hangs.
fn passes(case: impl Future<Output = ()>) -> bool {
    let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut case = pin!(case);
        (0..POLLS).any(|_| case.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready())
    }));
    polled.unwrap_or(false)
}

#[test]
fn every_flaw_is_caught_by_the_case_that_names_its_rule() {
    macro_rules! caught {
        ($($flaw:ident by $($case:ident),+;)+) => {$($(
            assert!(passes(contract::$case(&*Broken::new(Flaw::None))), stringify!($case));
            assert!(
                !passes(contract::$case(&*Broken::new(Flaw::$flaw))),
                concat!(stringify!($flaw), " passes ", stringify!($case)),
            );
        )+)+};
    }
    caught! {
        EndsEarly by get_finds_a_record_through_its_deadline_and_not_after,
            update_works_through_the_deadline_and_not_after;
        EndsLate by get_finds_a_record_through_its_deadline_and_not_after,
            update_works_through_the_deadline_and_not_after;
        UpdatesTheExpired by update_works_through_the_deadline_and_not_after;
        Renews by writes_do_not_renew_the_deadline,
            random_operations_are_answered_as_by_a_plain_map;
        Replaces by create_refuses_an_id_that_is_taken,
            create_collides_through_the_deadline_and_not_after,
            random_operations_are_answered_as_by_a_plain_map;
        AppliesAgain by a_write_repeated_after_a_lost_acknowledgement_applies_once,
            random_operations_are_answered_as_by_a_plain_map;
        WritesWhatIsKept by keep_writes_nothing,
            random_operations_are_answered_as_by_a_plain_map;
        DecodesContent by every_kind_of_json_is_kept_byte_for_byte,
            random_operations_are_answered_as_by_a_plain_map;
        DropsNul by every_kind_of_json_is_kept_byte_for_byte;
        Resurrects by an_update_after_a_delete_resurrects_nothing,
            update_of_an_unknown_task_is_none,
            random_operations_are_answered_as_by_a_plain_map;
        SweepsTheLiving by sweep_removes_exactly_what_has_expired;
        Miscounts by sweep_removes_exactly_what_has_expired;
        BeginsWithoutAWord by a_feed_begins_by_telling_its_reader_to_look;
        ForgetsUpdates by a_feed_reports_every_kind_of_change_to_every_listener, a_feed_reports_what_can_be_seen;
        ForgetsDeletes by a_feed_reports_every_kind_of_change_to_every_listener;
        HearsOne by a_feed_reports_every_kind_of_change_to_every_listener;
        LeasesEndEarly by expired_leases_finds_what_is_abandoned_and_nothing_else;
        FindsTheExpired by expired_leases_finds_what_is_abandoned_and_nothing_else;
        FindsWhatDoesNotWork by expired_leases_finds_what_is_abandoned_and_nothing_else;
        ForgetsTheLimit by expired_leases_finds_what_is_abandoned_and_nothing_else;
    }
}

#[test]
fn flaws_that_show_in_a_race_are_caught_without_threads() {
    macro_rules! caught {
        ($($flaw:ident by $($case:ident),+;)+) => {$($(
            let race = |flaw| parallel::$case(Broken::new(flaw), contract::in_place);
            assert!(passes(race(Flaw::None)), stringify!($case));
            assert!(!passes(race(Flaw::$flaw)), concat!(stringify!($flaw), " passes ", stringify!($case)));
        )+)+};
    }
    caught! {
        LosesUpdates by concurrent_updates_are_all_applied,
            of_concurrent_ends_the_first_is_final,
            of_a_thousand_races_of_cancel_against_complete_the_first_wins,
            of_concurrent_answers_one_resumes_the_task;
        ReportsEarly by a_feed_is_never_ahead_of_the_store_nor_silent;
        ForgetsUpdates by a_feed_is_never_ahead_of_the_store_nor_silent;
    }
}
