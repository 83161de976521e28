//! Tasks that work and that nobody runs, though no node died: they sleep, or wait for a node to take them on.

use std::time::Duration;

use mcp_tasks_core::store::RecordMarks;
use mcp_tasks_core::{Change, Claim, Idle, InputKind, Ledger, Report, TaskRecord, TaskStatus};

use super::records::{at, capabilities, claim, parked, raw, responses, suspension, working, written};

/// Until when the tasks here sleep.
const WAKE: u64 = 60_000;

fn leased() -> TaskRecord {
    let mut record = working();
    record.execution.node = Some("node-a".into());
    record.execution.lease_until = Some(at(30_000));
    record
}

fn asleep() -> TaskRecord {
    written(leased().slept(1, at(10), at(WAKE), &suspension(&[]).ledger, None))
}

#[test]
fn a_sleeper_works_on_without_a_node_and_clients_see_no_difference() {
    let record = asleep();
    assert_eq!(record.status, TaskStatus::Working);
    assert_eq!(record.last_updated_at, at(0));
    assert_eq!(record.ledger, suspension(&[]).ledger);
    assert_eq!(
        (&record.execution.node, record.execution.idle),
        (&None, Some(Idle::Asleep))
    );
    assert_eq!(record.execution.epoch, 1);
    assert_eq!(record.deadline(), working().deadline());
}

#[test]
fn a_report_goes_along_and_is_seen() {
    let report = Report::new(3.0, "3/10: resting".into());
    let record = written(leased().slept(1, at(10), at(WAKE), &Ledger::default(), Some(&report)));
    assert_eq!(record.status_message.as_deref(), Some("3/10: resting"));
    assert_eq!((record.progress, record.last_updated_at), (Some(3.0), at(10)));
}

#[test]
fn nobody_takes_a_sleeper_on_before_its_time_and_everybody_may_from_then_on() {
    let record = asleep();
    assert!(
        !record.is_abandoned(at(WAKE - 1)),
        "not while its former lease is over, nor to the last instant"
    );
    assert_eq!(record.claimed(at(WAKE - 1), &claim()), Change::Keep);
    assert!(record.is_abandoned(at(WAKE)));
    let marks = RecordMarks::of(&record);
    assert!(
        marks
            .lease
            .is_some_and(|lease| at(WAKE - 1) <= lease && lease < at(WAKE)),
        "an index finds it by the same instant"
    );
}

#[test]
fn it_is_woken_once_in_an_execution_of_its_own() {
    let record = asleep();
    let woken = written(record.claimed(at(WAKE), &claim()));
    assert_eq!(woken.execution.epoch, 2);
    assert_eq!(woken.execution.node.as_deref(), Some("node-b"));
    assert_eq!(
        (woken.execution.lease_until, woken.execution.idle),
        (Some(at(30_000)), None)
    );
    assert_eq!((woken.last_updated_at, woken.status), (at(0), TaskStatus::Working));
    assert_eq!(woken.ledger, record.ledger);
    let late = Claim::new("node-c".into(), at(WAKE + 30_000));
    let first = written(record.claimed(at(WAKE), &late));
    assert_eq!(
        first.claimed(at(WAKE), &claim()),
        Change::Keep,
        "of two that come by one does so"
    );
}

#[test]
fn the_execution_that_went_to_sleep_changes_nothing_any_more() {
    let record = asleep();
    assert!(!record.is_owned_by(1));
    let changes = [
        record.journaled(1, at(20), &Ledger::default(), None),
        record.progressed(1, at(20), &Report::new(1.0, "late".into())),
        record.suspended(1, at(20), &suspension(&[("q", InputKind::Form)]), None),
        record.slept(1, at(20), at(2 * WAKE), &Ledger::default(), None),
        record.completed(1, at(20), &raw("{}"), None),
        record.failed(1, at(20), &raw("{}"), "no"),
        record.extended(1, at(20), Some(Duration::from_secs(1))),
        record.renewed(1, at(20_000)),
        record.answered(at(20), &responses(&[("q", "{}")]), &capabilities("{}"), &claim()),
    ];
    for change in changes {
        assert_eq!(change, Change::Keep);
    }
}

#[test]
fn a_sleeper_is_never_taken_for_one_whose_node_is_gone() {
    let record = asleep();
    for now in [at(10), at(WAKE), at(10 * WAKE)] {
        assert_eq!(record.abandoned(now, &raw("{}"), "lost"), Change::Keep);
    }
    let woken = written(record.claimed(at(WAKE), &Claim::new("node-b".into(), at(WAKE + 5))));
    let lost = written(woken.abandoned(at(WAKE + 6), &raw("{}"), "lost"));
    assert_eq!(lost.status, TaskStatus::Failed, "awake it is one again");
}

#[test]
fn a_sleeper_is_called_off_where_it_lies_and_expires_like_any_other() {
    let record = asleep();
    let cancelled = written(record.cancelled(at(20)));
    assert_eq!(
        (cancelled.status, cancelled.execution.idle),
        (TaskStatus::Cancelled, None)
    );
    assert_eq!(cancelled.execution.lease_until, None);
    assert!(record.is_expired(at(3_600_001)));
}

#[test]
fn only_while_it_sleeps_a_record_is_of_the_format_that_earlier_releases_leave_alone() {
    assert_eq!(leased().format, 1);
    let record = asleep();
    assert_eq!(record.format, 2);
    let text = record.to_json().unwrap();
    assert_eq!(TaskRecord::from_json(&text).unwrap(), record);
    assert_eq!(written(record.claimed(at(WAKE), &claim())).format, 1);
    assert_eq!(written(record.cancelled(at(20))).format, 1);
}

fn unclaimed() -> TaskRecord {
    working().unclaimed()
}

#[test]
fn a_new_task_can_be_left_to_whichever_node_takes_it_on() {
    let record = unclaimed();
    assert_eq!((record.status, record.execution.epoch), (TaskStatus::Working, 0));
    assert_eq!(
        (&record.execution.node, record.execution.idle),
        (&None, Some(Idle::Unclaimed))
    );
    assert!(record.is_abandoned(at(0)), "from the beginning");
    assert!(RecordMarks::of(&record).unclaimed && !RecordMarks::of(&asleep()).unclaimed);
    assert!(!record.is_owned_by(0));
    assert_eq!(
        record.abandoned(at(100_000), &raw("{}"), "lost"),
        Change::Keep,
        "no node was lost"
    );
    let claimed = written(record.claimed(at(5), &claim()));
    assert_eq!((claimed.execution.epoch, claimed.execution.idle), (1, None));
    assert_eq!((claimed.format, claimed.last_updated_at), (1, at(0)));
    assert_eq!(claimed.claimed(at(5), &claim()), Change::Keep, "once");
}

#[test]
fn a_node_whose_clock_is_behind_takes_it_on_too_and_the_oldest_is_found_first() {
    let record = unclaimed();
    let behind = mcp_tasks_core::Timestamp::from_millis(at(0).as_millis() - 10_000);
    assert!(matches!(record.claimed(behind, &claim()), Change::Write(_)));
    let mut later = working();
    later.created_at = at(1);
    assert!(RecordMarks::of(&record).lease < RecordMarks::of(&later.unclaimed()).lease);
}

#[test]
fn an_unclaimed_task_is_called_off_where_it_lies() {
    let cancelled = written(unclaimed().cancelled(at(20)));
    assert_eq!(
        (cancelled.status, cancelled.execution.idle),
        (TaskStatus::Cancelled, None)
    );
    assert_eq!(cancelled.claimed(at(100_000), &claim()), Change::Keep);
}

#[test]
fn answers_can_be_taken_in_for_whichever_node_goes_on() {
    const YES: &str = r#"{"action":"accept","content":{"go":true}}"#;
    let record = parked(&["a", "b"]);
    let new = capabilities(r#"{"elicitation":{"url":{}}}"#);
    let half = written(record.answered_unclaimed(at(20), &responses(&[("b", YES)]), &new));
    assert_eq!(
        (half.status, half.execution.idle),
        (TaskStatus::InputRequired, None),
        "one is still open"
    );
    assert_eq!(half.format, 1);
    let full = written(half.answered_unclaimed(at(30), &responses(&[("a", YES)]), &new));
    assert_eq!(
        (full.status, full.execution.idle),
        (TaskStatus::Working, Some(Idle::Unclaimed))
    );
    assert_eq!(
        (full.client_capabilities.clone(), full.last_updated_at),
        (new.clone(), at(30))
    );
    assert_eq!(full.execution.epoch, record.execution.epoch, "no execution has begun");
    let claimed = written(full.claimed(at(31), &claim()));
    assert_eq!(claimed.execution.epoch, record.execution.epoch + 1);
    let own = written(half.answered(at(30), &responses(&[("a", YES)]), &new, &claim()));
    assert_eq!(claimed.ledger, own.ledger, "and the answers are the same");
    let again = full.answered_unclaimed(at(40), &responses(&[("a", YES), ("b", YES)]), &new);
    assert_eq!(again, Change::Keep);
}
