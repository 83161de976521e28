//! Executions that start and end beside each other, beside cancellations and beside the end of the node.

use futures::FutureExt;
use mcp_tasks_core::{ClientCapabilities, Json, Timestamp};

use super::*;

fn record(id: &str, epoch: u64) -> TaskRecord {
    let nothing = Json::of(&()).unwrap();
    let capabilities = ClientCapabilities::new(nothing.clone());
    let now = Timestamp::from_millis(0);
    let mut record = TaskRecord::new(
        TaskId::new(id),
        "tool".into(),
        nothing,
        capabilities,
        now,
        None,
        Duration::from_secs(1),
    );
    record.execution.epoch = epoch;
    record
}

/// An execution that is left behind here says nothing about a later one, which may be lost elsewhere.
#[test]
fn an_execution_has_reached_its_own_epoch_and_those_before() {
    let executions = Arc::<Executions>::default();
    let record = record("task", 2);
    let registration = executions.register(&record);
    let reached = [1, 2, 3].map(|epoch| executions.has_reached(&record.task_id, epoch));
    assert_eq!(reached, [true, true, false]);
    drop(registration);
    assert!(!executions.has_reached(&record.task_id, 1));
}

/// A later execution of a task that starts here stops what hangs of an earlier one, which does not take it off the list
/// when it ends.
#[test]
fn a_later_execution_stops_an_earlier_one() {
    let executions = Arc::<Executions>::default();
    let first = executions.register(&record("task", 1));
    let same = executions.register(&record("task", 1));
    assert!(!first.token.is_cancelled());
    let second = executions.register(&record("task", 2));
    assert!(same.token.is_cancelled() && !second.token.is_cancelled());
    drop((first, same));
    assert!(executions.has_reached(&TaskId::new("task"), 2));
}

/// A node that stops waits for what runs, then stops it.
#[tokio::test(start_paused = true)]
async fn what_runs_has_some_time_to_end() {
    let executions = Arc::<Executions>::default();
    let quick = executions.register(&record("quick", 1));
    let slow = executions.register(&record("slow", 1));
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!quick.token.is_cancelled());
    });
    let started = tokio::time::Instant::now();
    let stopped = tokio::spawn(async move {
        slow.token.cancelled().await;
        tokio::time::Instant::now() - started
    });
    assert_eq!(executions.drain(Duration::from_secs(5)).await, 1);
    let stopped = stopped.await.unwrap();
    assert!(stopped >= Duration::from_secs(5) && started.elapsed() < Duration::from_secs(5) + RELEASE_PATIENCE);
    assert!(executions.is_closing() && executions.is_stopping());
}

/// A cancellation that comes while the write that starts an execution is under way stops the execution, and no later one.
#[test]
fn a_cancellation_before_an_execution_is_registered_stops_it() {
    let executions = Arc::<Executions>::default();
    let record = record("task", 1);
    let (pending, other) = (
        executions.pending_start(&record.task_id),
        executions.pending_start(&record.task_id),
    );
    executions.cancel(&record.task_id);
    drop(other);
    assert!(executions.register(&record).token.is_cancelled());
    drop(pending);
    assert!(!executions.register(&record).token.is_cancelled());
    assert!(lock(&executions.state).starting.is_empty());
}

/// What the store tells while the write that starts an execution is under way is told to the execution, but for that write.
#[test]
fn a_change_before_an_execution_is_registered_reaches_it() {
    let executions = Arc::<Executions>::default();
    let mut record = record("task", 1);
    record.version = 5;
    for (told, reaches) in [(Some(5), false), (Some(6), true), (None, true)] {
        let _pending = executions.pending_start(&record.task_id);
        executions.record_changed(&record.task_id, told);
        let registration = executions.register(&record);
        let is_told = registration.changed.notified().now_or_never().is_some();
        assert_eq!(is_told, reaches, "{told:?}");
    }
}
