//! The table of states and transitions.

use std::time::Duration;

use mcp_tasks_core::{Change, InputKind, Ledger, Report, TaskRecord, TaskStatus, Timestamp};

use super::records::{at, capabilities, claim, parked, raw, responses, suspension, working, written};

const YES: &str = r#"{"action":"accept","content":{"go":true}}"#;

fn report(progress: f64) -> Report {
    Report::new(progress, format!("{progress}/10").into())
}

/// A transition with arguments that would change a record it applies to.
type Transition = fn(&TaskRecord, u64) -> Change;

/// Every transition, whether it is an execution's (and so fenced), and the status it leaves.
fn transitions() -> Vec<(&'static str, Transition, bool, TaskStatus)> {
    vec![
        (
            "journaled",
            |record, epoch| record.journaled(epoch, at(99), &suspension(&[]).ledger, None),
            true,
            TaskStatus::Working,
        ),
        (
            "progressed",
            |record, epoch| record.progressed(epoch, at(99), &report(5.0)),
            true,
            TaskStatus::Working,
        ),
        (
            "suspended",
            |record, epoch| {
                let questions = suspension(&[("q", InputKind::Form)]);
                record.suspended(epoch, at(99), &questions, Some(&report(5.0)))
            },
            true,
            TaskStatus::InputRequired,
        ),
        (
            "slept",
            |record, epoch| record.slept(epoch, at(99), at(60_000), &suspension(&[]).ledger, None),
            true,
            TaskStatus::Working,
        ),
        (
            "completed",
            |record, epoch| record.completed(epoch, at(99), &raw("{}"), Some(&report(5.0))),
            true,
            TaskStatus::Completed,
        ),
        (
            "failed",
            |record, epoch| record.failed(epoch, at(99), &raw(r#"{"code":-1}"#), "no"),
            true,
            TaskStatus::Failed,
        ),
        (
            "extended",
            |record, epoch| record.extended(epoch, at(99), None),
            true,
            TaskStatus::Working,
        ),
        (
            "released",
            |record, epoch| record.released(epoch, at(99)),
            true,
            TaskStatus::Working,
        ),
        (
            "released_unbegun",
            |record, epoch| record.released_unbegun(epoch, at(99)),
            true,
            TaskStatus::Working,
        ),
        (
            "cancelled",
            |record, _| record.cancelled(at(99)),
            false,
            TaskStatus::Cancelled,
        ),
        (
            "answered",
            |record, _| {
                let answers = responses(&[("a", YES), ("b", YES)]);
                record.answered(at(99), &answers, &capabilities("{}"), &claim())
            },
            false,
            TaskStatus::Working,
        ),
    ]
}

fn terminal() -> Vec<TaskRecord> {
    let record = working();
    vec![
        written(record.completed(1, at(50), &raw(r#"{"content":[]}"#), Some(&report(9.0)))),
        written(record.failed(1, at(50), &raw(r#"{"code":-32603}"#), "lost")),
        written(record.cancelled(at(50))),
        written(parked(&["a"]).cancelled(at(50))),
    ]
}

#[test]
fn a_terminal_record_stays_as_it_is_whatever_comes() {
    for record in terminal() {
        assert!(record.status.is_terminal());
        for (name, transition, _, _) in transitions() {
            for epoch in [0, record.execution.epoch, record.execution.epoch + 1] {
                let change = transition(&record, epoch);
                assert_eq!(change, Change::Keep, "{name} on {:?}", record.status);
            }
        }
    }
}

#[test]
fn an_execution_that_was_left_behind_changes_nothing() {
    let parked = parked(&["a", "b"]);
    for (name, transition, fenced, status) in transitions() {
        for epoch in [0, 2] {
            if fenced {
                let change = transition(&working(), epoch);
                assert_eq!(change, Change::Keep, "{name} of epoch {epoch}");
            }
        }
        // Parked, no execution owns the record, not even the one that parked it.
        match transition(&parked, 1) {
            Change::Keep => assert!(fenced, "{name}"),
            change => {
                assert!(!fenced, "{name}");
                assert_eq!(written(change).status, status, "{name}");
            }
        }
    }
}

#[test]
fn every_transition_of_a_working_record_leaves_the_status_it_says() {
    for (name, transition, _, status) in transitions() {
        match transition(&working(), 1) {
            Change::Keep => assert_eq!(name, "answered", "nothing is asked"),
            change => assert_eq!(written(change).status, status, "{name}"),
        }
    }
}

#[test]
fn last_updated_at_moves_with_what_a_client_can_see_and_with_nothing_else() {
    for (name, transition, _, _) in transitions() {
        let record = if name == "answered" {
            parked(&["a", "b"])
        } else {
            working()
        };
        let next = written(transition(&record, 1));
        let seen = !matches!(name, "journaled" | "slept" | "released" | "released_unbegun");
        let expected = if seen { at(99) } else { at(0) };
        assert_eq!(next.last_updated_at, expected, "{name}");
        assert_eq!(next.created_at, at(0), "{name}");
        assert_eq!(
            (next.version, next.last_write),
            (0, None),
            "{name}: stamps are the store's"
        );
    }
}

#[test]
fn last_updated_at_never_goes_back() {
    let mut record = working();
    record.last_updated_at = at(1_000);
    for (name, transition, _, _) in transitions() {
        if let Change::Write(next) = transition(&record, 1) {
            assert_eq!(next.last_updated_at, at(1_000), "{name}");
        }
    }
}

#[test]
fn progress_only_rises_and_the_words_stay_with_the_highest() {
    let record = written(working().progressed(1, at(10), &report(3.0)));
    assert_eq!(record.status_message.as_deref(), Some("3/10"));
    for lower in [3.0, 2.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(record.progressed(1, at(20), &report(lower)), Change::Keep, "{lower}");
        let journaled = written(record.journaled(1, at(20), &Ledger::default(), Some(&report(lower))));
        assert_eq!(journaled, record, "{lower}");
    }
    let first = written(working().journaled(1, at(20), &Ledger::default(), Some(&report(0.0))));
    assert_eq!((first.progress, first.last_updated_at), (Some(0.0), at(20)));
    let not_a_number = working().progressed(1, at(20), &report(f64::NAN));
    assert_eq!(not_a_number, Change::Keep);
}

#[test]
fn progress_in_the_same_words_is_kept_and_not_seen() {
    let record = written(working().progressed(1, at(10), &Report::new(1.0, "on it".into())));
    let next = written(record.progressed(1, at(20), &Report::new(2.0, "on it".into())));
    assert_eq!((next.progress, next.last_updated_at), (Some(2.0), at(10)));
}

#[test]
fn the_last_report_goes_with_the_write_that_ends_the_execution() {
    let ended = written(working().completed(1, at(9), &raw("{}"), Some(&report(10.0))));
    assert_eq!(ended.status_message.as_deref(), Some("10/10"));
    let parked = written(working().suspended(1, at(9), &suspension(&[("q", InputKind::Form)]), Some(&report(4.0))));
    assert_eq!(parked.status_message.as_deref(), Some("4/10"));
}

#[test]
fn a_terminal_record_holds_its_outcome_and_no_ledger_question_or_claim() {
    for record in terminal() {
        assert!(record.ledger.is_empty() && record.open.is_empty());
        assert_eq!((&record.execution.node, record.execution.lease_until), (&None, None));
        assert_eq!(record.result.is_some(), record.status == TaskStatus::Completed);
        assert_eq!(record.error.is_some(), record.status == TaskStatus::Failed);
    }
}

#[test]
fn a_parked_record_holds_its_questions_and_needs_no_node() {
    let mut record = working();
    record.execution.node = Some("node-a".into());
    record.execution.lease_until = Some(at(5));
    let questions = suspension(&[("a", InputKind::Form), ("b", InputKind::Url)]);
    let parked = written(record.suspended(1, at(10), &questions, None));
    assert_eq!(parked.open, questions.open);
    assert_eq!(parked.ledger, questions.ledger);
    assert_eq!((&parked.execution.node, parked.execution.lease_until), (&None, None));
    assert_eq!(parked.execution.epoch, 1);
    let nothing = suspension(&[]);
    assert_eq!(record.suspended(1, at(10), &nothing, None), Change::Keep);
}

/// Another node need not wait, the execution that was stopped can write no more, and one that had not begun is told from
/// one that had by the node it names.
#[test]
fn a_released_task_is_abandoned_at_once_and_its_execution_fenced_off() {
    let mut record = working();
    record.execution.node = Some("node-a".into());
    record.execution.lease_until = Some(at(30_000));
    let begun = written(record.released(1, at(99)));
    let unbegun = written(record.released_unbegun(1, at(99)));
    for released in [&begun, &unbegun] {
        assert!(released.is_abandoned(at(99)));
        assert_eq!(released.completed(1, at(99), &raw("{}"), None), Change::Keep);
        let taken = written(released.claimed(at(99), &claim()));
        assert_eq!(taken.execution.epoch, 3);
        assert_eq!(taken.released(2, at(99)), Change::Keep, "it is the next node's");
    }
    assert_eq!(begun.execution.node.as_deref(), Some("node-a"));
    assert_eq!(unbegun.execution.node, None);
    assert!(
        written(record.released(1, at(0))).is_abandoned(at(1)),
        "at the origin of time too"
    );
}

#[test]
fn extending_moves_the_deadline_from_the_creation_on() {
    let record = working();
    assert_eq!(record.deadline(), Some(at(3_600_000)));
    let same = record.extended(1, at(10), Some(Duration::from_secs(3600)));
    assert_eq!(same, Change::Keep);
    let longer = written(record.extended(1, at(10), Some(Duration::from_millis(7_200_000))));
    assert_eq!(longer.deadline(), Some(at(7_200_000)));
    assert!(!longer.is_expired(at(7_200_000)) && longer.is_expired(at(7_200_001)));
    let unlimited = written(record.extended(1, at(10), None));
    assert!(!unlimited.is_expired(Timestamp::MAX));
}

#[test]
fn transitions_are_pure() {
    for record in [working(), parked(&["a", "b"])] {
        for (name, transition, _, _) in transitions() {
            let before = record.clone();
            assert_eq!(transition(&record, 1), transition(&record, 1), "{name}");
            assert_eq!(record, before, "{name}");
        }
    }
}
