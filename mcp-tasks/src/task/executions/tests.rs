//! Executions that are left behind on this node and do not know it yet.

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
