//! Server processes that share a store: what one begins another goes on with, and what becomes of the tasks of a process
//! that is killed, frozen, or cut off from its database.
//!
//! Each scenario runs on each store. Clocks decide nothing that a test asserts: where a lease has to be over, the other
//! node's clock is put forward.

mod crashes;
mod database;
mod listening;
mod node;
mod outages;
mod placement;
mod sharing;
mod sleepers;

use database::Database;
use mcp_tasks_tests::servers;

/// The scenarios, for one store.
macro_rules! scenarios {
    ($($file:ident::$scenario:ident)+) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $scenario() {
            if let Some(mut database) = database() {
                crate::nodes::$file::$scenario(&mut database).await;
            }
        }
    )+};
}

/// A module of tests for each store: its name, and its database, such as `servers::redis(&[]).map(Database::from)`. Where a
/// server is not installed there is none: that was said loudly, or has failed the test in CI.
macro_rules! on_every_store {
    ($($store:ident = $database:expr;)+) => {$(
        mod $store {
            use super::*;

            fn database() -> Option<Database> {
                $database
            }

            scenarios! {
                sharing::a_task_is_created_here_and_polled_answered_and_read_there
                sharing::a_cancel_there_stops_the_work_here
                sharing::a_parked_task_is_cancelled_from_anywhere
                sharing::sixty_four_answers_at_once_resume_a_task_once
                sharing::three_nodes_take_turns
                crashes::a_parked_task_needs_no_process
                crashes::the_work_of_a_killed_process_fails
                crashes::the_work_of_a_killed_process_fails_without_a_poll
                crashes::the_work_of_a_killed_process_is_replayed_if_its_tool_says_so
                crashes::a_process_that_is_told_to_stop_leaves_its_work_to_the_others
                crashes::a_process_frozen_past_its_lease_changes_nothing_any_more
                crashes::a_process_frozen_past_its_lease_does_not_undo_a_replay
                listening::what_is_done_there_is_heard_here
                listening::an_end_is_heard_though_the_feed_was_cut
                sleepers::a_sleeper_is_woken_elsewhere_once
                sleepers::a_sleeper_is_woken_without_a_poll
                sleepers::a_sleeper_is_woken_in_time_where_it_fell_asleep
                sleepers::a_sleeper_is_cancelled_from_anywhere
                placement::one_node_speaks_and_another_works
                placement::whatever_a_node_that_does_not_work_accepts_is_handed_over
                placement::each_task_is_taken_on_once
                placement::the_work_of_a_killed_worker_goes_on
                placement::a_task_waits_for_a_worker
                outages::what_was_acknowledged_is_there_after_an_outage
            }
        }
    )+};
}

on_every_store! {
    sqlite = Some(Database::file());
    postgres = servers::postgres(&[]).map(Database::from);
    redis = servers::redis(&[]).map(Database::from);
    nats = servers::nats(&[]).map(Database::from);
}
