//! The contract of [`TaskStore`] as a suite of cases, for the tests of whoever writes a store.
//!
//! Each case is a plain async function that tries one rule and panics, naming it, when the store breaks it.
//! [`store_contract!`](crate::store_contract) stamps a test per case:
//!
//! ```
//! # #[derive(Debug)] struct MyStore; impl MyStore { fn connect() -> std::future::Ready<mcp_tasks_core::MemoryStore> { std::future::ready(mcp_tasks_core::MemoryStore::new()) } }
//! # fn block_on<F: Future>(future: F) -> F::Output { let mut future = std::pin::pin!(future); loop {
//! #     if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) { break output } } }
//! // In the tests of the store's crate. With tokio, say `#[tokio::test]` in place of `block_on = block_on`.
//! mcp_tasks_core::store_contract! {
//!     my_store,
//!     block_on = block_on,
//!     async { MyStore::connect().await },
//! }
//! # fn main() {}
//! ```
//!
//! # What a backend needs
//!
//! * **Isolation.** Ids are made of the case's name and a number, and every case removes its ids before it begins, so
//!   that all cases can share one backend and run at once, and so that a run that was broken off leaves nothing behind.
//!   Two runs at once need two databases, prefixes or buckets.
//! * **Time.** Cases bring their own: it begins in the year 2100 (in 1971 for the sweep, which must not meet the records
//!   of other cases), and nothing sleeps. A backend that expires records by itself, by a clock of its own, after the time
//!   remaining, does not get in the way: no case reads a record back after a write with less than ten minutes left.
//! * **Contention.** The cases in [`parallel`] race operations against each other. In one test task they interleave
//!   wherever the store awaits its backend, which is where a store over a network loses updates. A store that never
//!   pends, or one that is to be tried on several threads, needs `spawn = …`: a [`Spawn`] that really runs work in
//!   parallel, such as `|work| Box::pin(async { tokio::spawn(work).await.unwrap() })`.
//! * **Effort.** The whole suite is some thirty thousand operations, most of them in the races and in
//!   [`random_operations_are_answered_as_by_a_plain_map`].
//! * **A feed**, where the store has one, has to say what it owes: the cases of the [`ChangeFeed`](crate::ChangeFeed) wait
//!   for it, for ever if it does not, as nothing here has a clock. Where that may happen, give the tests a time-out.
//! * **Size.** A store may refuse what is too large for its backend, with [`StoreError::Refused`]. It must not cut it.

use std::pin::Pin;
use std::sync::Arc;

use super::{Mutation, StoreError, TaskStore, Updated};
use crate::{Change, TaskId, TaskRecord, Timestamp, WriteId};

mod basics;
mod content;
mod dice;
mod differential;
mod expiry;
mod feed;
mod leases;
mod mutation;
pub mod parallel;
mod records;
#[doc(hidden)]
pub mod scripted;

pub use basics::*;
pub use content::*;
#[doc(hidden)]
pub use dice::Dice;
pub use differential::*;
pub use expiry::*;
pub use feed::*;
pub use leases::*;
pub use mutation::*;

/// Work of a parallel case.
pub type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Starts work and returns what is to be awaited until it has ended. It may start at once or when it is awaited, and
/// passes a panic on.
pub type Spawn = fn(Work) -> Work;

/// The [`Spawn`] without a runtime: everything runs in the task of the test.
#[must_use]
pub fn in_place(work: Work) -> Work {
    work
}

/// A record's place in a case: ids of its own, and the store.
struct Case<'a> {
    store: &'a dyn TaskStore,
    name: &'static str,
}

impl<'a> Case<'a> {
    const fn new(store: &'a dyn TaskStore, name: &'static str) -> Self {
        Self { store, name }
    }

    /// An id at which nothing is stored.
    async fn id(&self, number: u32) -> TaskId {
        let id = TaskId::new(&format!("contract-{}-{number}", self.name));
        self.store
            .delete(&id)
            .await
            .expect("delete removes what an earlier run left");
        id
    }

    async fn create(&self, record: TaskRecord) -> Arc<TaskRecord> {
        self.store
            .create(record)
            .await
            .expect("create takes a record with a free id")
    }

    async fn get(&self, id: &TaskId, now: Timestamp) -> Option<Arc<TaskRecord>> {
        self.store.get(id, now).await.expect("get answers")
    }

    async fn update(&self, id: &TaskId, now: Timestamp, write: u128, mutation: Mutation) -> Option<Updated> {
        let updated = self.store.update(id, now, WriteId::new(write), mutation);
        updated.await.expect("update answers")
    }

    async fn is_there(&self, id: &TaskId, now: Timestamp) -> bool {
        self.get(id, now).await.is_some()
    }
}

/// A mutation that changes a copy of the record.
fn changing(change: impl Fn(&mut TaskRecord) + Send + Sync + 'static) -> Mutation {
    Arc::new(move |record| {
        let mut next = record.clone();
        change(&mut next);
        Change::Write(Box::new(next))
    })
}

fn keeping() -> Mutation {
    Arc::new(|_| Change::Keep)
}

fn is_collision<T>(outcome: &Result<T, StoreError>) -> bool {
    matches!(outcome, Err(StoreError::AlreadyExists { .. }))
}

/// Stamps one test per case of the [contract suite](crate::store::contract).
///
/// * a name for the module that holds the tests;
/// * what makes a function a test: an attribute for async functions such as `#[tokio::test]`, or
///   `block_on = path` with a function that runs a future to its end;
/// * an `async` block that makes the store: evaluated once per test, with everything in scope that is in scope around
///   the macro;
/// * optionally `spawn = expression`: a [`Spawn`](crate::store::contract::Spawn) for the parallel cases.
///
/// ```
/// use std::pin::pin;
/// use std::task::{Context, Poll, Waker};
///
/// use mcp_tasks_core::MemoryStore;
///
/// // The memory store is never kept waiting; a store that is takes its runtime's own `block_on`, or a test attribute.
/// fn block_on<F: Future>(future: F) -> F::Output {
///     let mut future = pin!(future);
///     loop {
///         if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
///             return output;
///         }
///     }
/// }
///
/// mcp_tasks_core::store_contract! { memory, block_on = block_on, async { MemoryStore::new() } }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! store_contract {
    ($name:ident, #[$($test:tt)+], $store:expr $(, spawn = $spawn:expr)? $(,)?) => {
        $crate::store_contract! { @module $name, [#[$($test)+]], $store, [$($spawn)?] }
    };
    ($name:ident, block_on = $block_on:path, $store:expr $(, spawn = $spawn:expr)? $(,)?) => {
        $crate::store_contract! { @module $name, [$block_on], $store, [$($spawn)?] }
    };

    (@module $name:ident, $how:tt, $store:expr, $spawn:tt) => {
        mod $name {
            // In a module of its own, with names of its own, so that nothing from around the macro meets ours.
            mod given {
                #[allow(unused_imports)]
                use super::super::*;

                pub(super) async fn __contract_store() -> ::std::sync::Arc<dyn $crate::TaskStore> {
                    ::std::sync::Arc::new($store.await)
                }

                pub(super) fn __contract_spawn() -> $crate::store::contract::Spawn {
                    $crate::store_contract! { @spawn $spawn }
                }

                $crate::store_contract! { @block_on $how }
            }

            $crate::store_contract! { @cases $how,
                create_then_get_returns_what_was_created
                create_refuses_an_id_that_is_taken
                create_with_the_write_id_of_the_record_that_is_there_is_done
                create_takes_the_place_of_an_expired_record
                a_created_record_has_version_one_and_keeps_its_write_id
                update_of_an_unknown_task_is_none
                update_returns_and_stores_the_new_record
                keep_writes_nothing
                every_write_raises_the_version_by_one_and_leaves_its_id
                stamps_of_the_mutation_are_overwritten
                a_write_repeated_after_a_lost_acknowledgement_applies_once
                a_mutation_sees_the_newest_record
                delete_is_idempotent
                an_update_after_a_delete_resurrects_nothing
                a_deleted_id_can_be_created_again
                records_do_not_touch_each_other
                get_finds_a_record_through_its_deadline_and_not_after
                update_works_through_the_deadline_and_not_after
                create_collides_through_the_deadline_and_not_after
                delete_works_at_any_time
                an_unlimited_record_never_expires
                writes_do_not_renew_the_deadline
                an_extended_deadline_is_honoured
                a_shortened_deadline_is_honoured
                a_lifted_deadline_is_honoured_and_can_be_set_again
                a_record_without_time_to_live_lives_for_its_instant
                sweep_removes_exactly_what_has_expired
                every_member_is_kept
                every_kind_of_json_is_kept_byte_for_byte
                content_that_an_update_brings_is_kept_byte_for_byte
                forms_and_answers_are_kept_byte_for_byte
                absent_and_empty_are_two_things
                unusual_ids_and_names_are_kept
                a_large_record_is_kept_whole_or_refused
                expired_leases_finds_what_is_abandoned_and_nothing_else
                a_feed_begins_by_telling_its_reader_to_look
                a_feed_reports_every_kind_of_change_to_every_listener
                a_feed_reports_what_can_be_seen
                a_feed_tells_of_tasks_that_nobody_has_taken_on
                random_operations_are_answered_as_by_a_plain_map
            }
            $crate::store_contract! { @parallel $how,
                concurrent_updates_are_all_applied
                of_concurrent_ends_the_first_is_final
                of_a_thousand_races_of_cancel_against_complete_the_first_wins
                of_concurrent_answers_one_resumes_the_task
                of_concurrent_creates_one_wins
                concurrent_repeats_of_one_write_apply_once
                readers_see_whole_versions_that_only_rise
                a_feed_is_never_ahead_of_the_store_nor_silent
            }
        }
    };

    (@spawn []) => { $crate::store::contract::in_place };
    (@spawn [$spawn:expr]) => { $spawn };

    (@block_on [#[$($test:tt)+]]) => {};
    (@block_on [$block_on:path]) => {
        pub(super) fn __contract_block_on(future: impl ::std::future::Future<Output = ()>) {
            $block_on(future);
        }
    };

    (@cases $how:tt, $($case:ident)+) => {$(
        $crate::store_contract! { @test $how, $case, {
            $crate::store::contract::$case(&*given::__contract_store().await).await;
        } }
    )+};
    (@parallel $how:tt, $($case:ident)+) => {$(
        $crate::store_contract! { @test $how, $case, {
            $crate::store::contract::parallel::$case(given::__contract_store().await, given::__contract_spawn()).await;
        } }
    )+};

    (@test [#[$($test:tt)+]], $case:ident, $body:block) => {
        #[$($test)+]
        async fn $case() $body
    };
    (@test [$block_on:path], $case:ident, $body:block) => {
        #[::core::prelude::v1::test]
        fn $case() {
            given::__contract_block_on(async $body);
        }
    };
}
