//! What the contract suite says of stores that break the contract: a suite that lets them pass is worth nothing.

use std::sync::Arc;
use std::time::Duration;

use mcp_tasks_core::store::contract::{self, parallel};
use mcp_tasks_core::{
    Change, Json, MemoryStore, Mutation, StoreFuture, Sweep, TaskId, TaskRecord, TaskStore, Timestamp, Updated, WriteId,
};

use super::stores::{block_on, give_way};

/// How a store breaks the contract.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Flaw {
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
}

#[derive(Debug)]
struct Broken {
    inner: MemoryStore,
    flaw: Flaw,
}

impl Broken {
    fn new(flaw: Flaw) -> Arc<Self> {
        Arc::new(Self {
            inner: MemoryStore::new(),
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
}

impl TaskStore for Broken {
    fn create(&self, record: TaskRecord) -> StoreFuture<'_, Arc<TaskRecord>> {
        Box::pin(async move {
            if self.flaw == Flaw::Replaces {
                self.inner.delete(&record.task_id).await?;
            }
            let created = self.inner.create(self.spoilt(record.clone())).await?;
            Ok(Arc::new(TaskRecord::clone(&created)))
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
                    let Some(seen) = self.inner.get(id, now).await? else {
                        return Ok(None);
                    };
                    give_way().await;
                    Arc::new(move |_| mutation(&seen))
                }
                _ => mutation,
            };
            if self.flaw == Flaw::AppliesAgain
                && let Some(present) = self.inner.get(id, now).await?
                && present.last_write == Some(write)
            {
                self.inner.update(id, now, WriteId::new(u128::MAX), keep_all()).await?;
            }
            let updated = self.inner.update(id, now, write, mutation).await?;
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
        self.inner.delete(id)
    }

    fn as_sweep(&self) -> Option<&dyn Sweep> {
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

/// Writes the record as it is.
fn keep_all() -> Mutation {
    Arc::new(|record| Change::Write(Box::new(record.clone())))
}

fn is_caught(case: impl FnOnce() + std::panic::UnwindSafe) -> bool {
    std::panic::catch_unwind(case).is_err()
}

#[test]
fn every_flaw_is_caught_by_the_case_that_names_its_rule() {
    macro_rules! caught {
        ($($flaw:ident by $($case:ident),+;)+) => {$($(
            assert!(
                is_caught(|| block_on(contract::$case(&*Broken::new(Flaw::$flaw)))),
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
    }
}

#[test]
fn lost_updates_are_caught_without_threads() {
    macro_rules! caught {
        ($($case:ident),+ $(,)?) => {$(
            assert!(
                is_caught(|| {
                    let store = Broken::new(Flaw::LosesUpdates);
                    block_on(parallel::$case(store, contract::in_place));
                }),
                concat!("lost updates pass ", stringify!($case)),
            );
        )+};
    }
    caught! {
        concurrent_updates_are_all_applied,
        of_concurrent_ends_the_first_is_final,
        of_a_thousand_races_of_cancel_against_complete_the_first_wins,
        of_concurrent_answers_one_resumes_the_task,
    }
}
