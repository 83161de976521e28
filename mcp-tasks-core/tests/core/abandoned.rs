//! What becomes of a task whose node is gone, and of one whose node is not.

use mcp_tasks_core::{Change, TaskRecord, TaskStatus};

use super::records::{at, claim, parked, raw, working, written};

/// A record that a node runs, whose lease lasts through `at(1_000)`.
fn leased() -> TaskRecord {
    let mut record = working();
    record.execution.node = Some("node-a".into());
    record.execution.lease_until = Some(at(1_000));
    record
}

/// What happens to a task that its node let go of, at an instant.
fn taken_on(record: &TaskRecord, now: u64) -> [Change; 2] {
    let error = raw(r#"{"code":-32603}"#);
    [
        record.claimed(at(now), &claim()),
        record.abandoned(at(now), &error, "lost"),
    ]
}

#[test]
fn a_task_is_taken_on_only_once_its_lease_is_over() {
    for record in [leased(), working(), parked(&["a"])] {
        let never = record.execution.lease_until.is_none();
        assert_eq!(
            taken_on(&record, 1_000),
            [Change::Keep, Change::Keep],
            "through its end"
        );
        let changes = taken_on(&record, 1_001);
        assert!(changes.iter().all(|change| (*change == Change::Keep) == never));
    }
}

#[test]
fn who_takes_a_task_on_fences_off_who_had_it_and_no_client_sees_it() {
    let record = leased();
    let taken = written(record.claimed(at(1_001), &claim()));
    assert_eq!((taken.status, taken.execution.epoch), (TaskStatus::Working, 2));
    assert_eq!(taken.execution.node.as_deref(), Some("node-b"));
    assert_eq!(taken.execution.lease_until, Some(at(30_000)));
    assert_eq!(taken.last_updated_at, record.last_updated_at);
    assert!(taken.is_owned_by(2) && !taken.is_owned_by(1));
    assert_eq!(taken.renewed(1, at(2_000)), Change::Keep, "its lease is another's now");
}

#[test]
fn a_task_that_is_given_up_has_failed() {
    let ended = written(taken_on(&leased(), 1_001)[1].clone());
    assert_eq!((ended.status, ended.last_updated_at), (TaskStatus::Failed, at(1_001)));
    assert_eq!(ended.error, Some(raw(r#"{"code":-32603}"#)));
    assert_eq!(ended.status_message.as_deref(), Some("lost"));
    assert_eq!(taken_on(&ended, 60_000), [Change::Keep, Change::Keep]);
    assert_eq!(ended.renewed(1, at(60_000)), Change::Keep);
}

#[test]
fn a_renewal_moves_the_lease_and_nothing_else() {
    let record = leased();
    let renewed = written(record.renewed(1, at(5_000)));
    let mut expected = record.clone();
    expected.execution.lease_until = Some(at(5_000));
    assert_eq!(renewed, expected);
    assert_eq!(parked(&["a"]).renewed(1, at(5_000)), Change::Keep, "nobody runs it");
}
