//! The table of states and transitions.

use std::time::Duration;

use mcp_tasks_core::{
    Change, EntryKind, InputKind, Ledger, Report, TaskRecord, TaskStatus, Timestamp,
};

use super::records::{
    at, capabilities, claim, parked, raw, responses, suspension, working, written,
};

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
        let expected = if name == "journaled" { at(0) } else { at(99) };
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
        assert_eq!(
            record.progressed(1, at(20), &report(lower)),
            Change::Keep,
            "{lower}"
        );
        let journaled =
            written(record.journaled(1, at(20), &Ledger::default(), Some(&report(lower))));
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
    let parked = written(working().suspended(
        1,
        at(9),
        &suspension(&[("q", InputKind::Form)]),
        Some(&report(4.0)),
    ));
    assert_eq!(parked.status_message.as_deref(), Some("4/10"));
}

#[test]
fn a_terminal_record_holds_its_outcome_and_no_ledger_question_or_claim() {
    for record in terminal() {
        assert!(record.ledger.is_empty() && record.open.is_empty());
        assert_eq!(
            (&record.execution.node, record.execution.lease_until),
            (&None, None)
        );
        assert_eq!(
            record.result.is_some(),
            record.status == TaskStatus::Completed
        );
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
    assert_eq!(
        (&parked.execution.node, parked.execution.lease_until),
        (&None, None)
    );
    assert_eq!(parked.execution.epoch, 1);
    let nothing = suspension(&[]);
    assert_eq!(record.suspended(1, at(10), &nothing, None), Change::Keep);
}

#[test]
fn partial_answers_are_kept_and_the_last_one_flips_the_task_once() {
    let record = parked(&["a", "b"]);
    let new = capabilities(r#"{"roots":{}}"#);
    let half = written(record.answered(at(20), &responses(&[("b", YES)]), &new, &claim()));
    assert_eq!(half.status, TaskStatus::InputRequired);
    assert_eq!(half.open, record.open[..1]);
    assert_eq!(half.client_capabilities, record.client_capabilities);
    assert_eq!((half.execution.epoch, &half.execution.node), (1, &None));
    let answer = half.ledger.entries().last().unwrap();
    assert_eq!(
        (answer.ordinal, answer.kind, answer.turn),
        (2, EntryKind::Elicit, None)
    );
    assert_eq!(answer.response.get(), YES);
    assert_eq!(answer.issued, record.open[1].issued);

    let full = written(half.answered(at(30), &responses(&[("a", YES)]), &new, &claim()));
    assert_eq!(full.status, TaskStatus::Working);
    assert!(full.open.is_empty());
    assert_eq!(
        full.client_capabilities, new,
        "of the request that resumes it"
    );
    assert_eq!(full.execution.epoch, 2);
    assert_eq!(full.execution.node.as_deref(), Some("node-b"));
    assert_eq!(full.execution.lease_until, Some(at(30_000)));
    assert_eq!(full.ledger.entries().len(), 3);

    let again = full.answered(
        at(40),
        &responses(&[("a", YES), ("b", YES)]),
        &new,
        &claim(),
    );
    assert_eq!(again, Change::Keep, "one flip only");
}

#[test]
fn what_is_no_answer_is_ignored_and_its_key_stays_open() {
    let record = parked(&["a", "b"]);
    for (key, response) in [
        ("zzz", YES),
        ("A", YES),
        ("a~2", YES),
        ("a", "7"),
        ("a", "null"),
        ("a", "[]"),
        ("a", "{}"),
        ("a", r#"{"action":"explode"}"#),
        ("a", r#"{"action":"Accept","content":{"go":true}}"#),
        ("a", r#"{"action":7}"#),
    ] {
        let answers = responses(&[(key, response)]);
        let change = record.answered(at(20), &answers, &capabilities("{}"), &claim());
        assert_eq!(change, Change::Keep, "{key}: {response}");
        let answers = responses(&[(key, response), ("b", YES)]);
        let half = written(record.answered(at(20), &answers, &capabilities("{}"), &claim()));
        assert_eq!(half.open, record.open[..1], "{key}: {response}");
    }
    let none = record.answered(at(20), &responses(&[]), &capabilities("{}"), &claim());
    assert_eq!(none, Change::Keep);
}

#[test]
fn declining_and_cancelling_are_answers_and_their_content_is_not_looked_at() {
    for response in [
        r#"{"action":"decline"}"#,
        r#"{"action":"decline","content":{"go":7}}"#,
        r#"{"action":"decline","content":1e999}"#,
        r#"{"action":"cancel","content":null}"#,
        r#"{"action":"cancel","content":[1],"extra":true}"#,
    ] {
        let answers = responses(&[("a", response)]);
        let change = parked(&["a"]).answered(at(20), &answers, &capabilities("{}"), &claim());
        let entry = written(change).ledger.entries().last().cloned().unwrap();
        let recorded: serde_json::Value = entry.response.decode().unwrap();
        let sent: serde_json::Value =
            serde_json::from_str(&response.replace("1e999", "0")).unwrap();
        assert_eq!(recorded, serde_json::json!({ "action": sent["action"] }));
    }
}

#[test]
fn what_does_not_fit_the_form_is_asked_again_under_other_keys_and_then_refused() {
    let misfit = [
        r#"{"action":"accept","content":{"go":"yes"}}"#,
        r#"{"action":"accept"}"#,
        r#"{"action":"accept","content":[1e999]}"#,
    ];
    let mut record = parked(&["a", "b"]);
    let original = record.open[0].clone();
    for (asking, (key, response)) in ["a", "a~2", "a~3"].into_iter().zip(misfit).enumerate() {
        assert_eq!(&*record.open[0].key, key);
        assert_eq!(record.open[0].misfits as usize, asking);
        let answers = responses(&[(key, response)]);
        record = written(record.answered(at(20), &answers, &capabilities("{}"), &claim()));
        assert_eq!(record.status, TaskStatus::InputRequired);
        if asking == 2 {
            break;
        }
        let again = &record.open[0];
        assert_eq!(
            (again.ordinal, again.issued),
            (original.ordinal, original.issued)
        );
        assert_eq!(again.fingerprint, original.fingerprint);
        assert_eq!(again.original.as_ref(), Some(&original.request));
        let text = again.request.get();
        let message: serde_json::Value = again.request.decode().unwrap();
        let message = message["params"]["message"].as_str().unwrap();
        assert!(message.ends_with("\n\na?"), "{message}");
        assert!(
            message.len() > "\n\na?".len(),
            "the reason stands in front: {message}"
        );
        assert_eq!(
            message.matches("a?").count(),
            1,
            "one reason at a time: {message}"
        );
        assert!(
            text.contains(r#"{"zeal":{"type":"integer"},"go""#),
            "the form's order stays: {text}"
        );
        assert!(text.contains(r#""x-order":[2,1]"#));
        // The earlier key is gone.
        let stale = record.answered(
            at(25),
            &responses(&[(key, YES)]),
            &capabilities("{}"),
            &claim(),
        );
        assert_eq!(stale, Change::Keep);
    }
    assert_eq!(record.open.len(), 1, "the other question is still open");
    let refusal = record.ledger.entries().last().unwrap();
    assert_eq!((refusal.ordinal, refusal.kind), (1, EntryKind::Refusal));
    assert_eq!(refusal.key.as_deref(), Some("a~3"));
    assert_eq!(&*refusal.label, "a?");
    assert!(
        refusal
            .response
            .get()
            .starts_with(r#"{"reason":"invalid_answers","detail":""#)
    );
}

#[test]
fn an_answer_to_the_second_asking_is_an_answer() {
    let misfit = responses(&[("a", r#"{"action":"accept","content":{"go":3}}"#)]);
    let again = written(parked(&["a"]).answered(at(20), &misfit, &capabilities("{}"), &claim()));
    let answers = responses(&[("a~2", YES)]);
    let full = written(again.answered(at(30), &answers, &capabilities("{}"), &claim()));
    assert_eq!(full.status, TaskStatus::Working);
    let entry = full.ledger.entries().last().unwrap();
    assert_eq!((entry.key.as_deref(), &*entry.label), (Some("a~2"), "a?"));
}

#[test]
fn the_last_refusal_flips_the_task_too() {
    let mut record = parked(&["a"]);
    for key in ["a", "a~2", "a~3"] {
        let misfit = responses(&[(key, r#"{"action":"accept","content":{"go":3}}"#)]);
        record = written(record.answered(at(20), &misfit, &capabilities("{}"), &claim()));
    }
    assert_eq!(
        (record.status, record.execution.epoch),
        (TaskStatus::Working, 2)
    );
}

#[test]
fn unknown_members_of_a_form_are_ignored_and_a_whole_float_is_an_integer() {
    let answers = responses(&[(
        "a",
        r#"{"action":"accept","content":{"go":true,"zeal":3.0,"more":1}}"#,
    )]);
    let full = written(parked(&["a"]).answered(at(20), &answers, &capabilities("{}"), &claim()));
    let recorded: serde_json::Value = full
        .ledger
        .entries()
        .last()
        .unwrap()
        .response
        .decode()
        .unwrap();
    assert_eq!(
        recorded["content"],
        serde_json::json!({ "go": true, "zeal": 3 })
    );
}

#[test]
fn urls_and_roots_are_answered_by_their_own_shapes() {
    let questions = suspension(&[("u", InputKind::Url), ("r", InputKind::Roots)]);
    let record = written(working().suspended(1, at(10), &questions, None));
    let wrong = responses(&[("u", r#"{"roots":[]}"#), ("r", r#"{"action":"accept"}"#)]);
    let kept = record.answered(at(20), &wrong, &capabilities("{}"), &claim());
    assert_eq!(kept, Change::Keep);
    let right = responses(&[
        ("u", r#"{"action":"accept","content":{"a":1}}"#),
        ("r", r#"{"roots":[{"uri":"file:///a"}],"_meta":{}}"#),
    ]);
    let full = written(record.answered(at(20), &right, &capabilities("{}"), &claim()));
    let recorded: Vec<_> = full.ledger.entries()[1..]
        .iter()
        .map(|entry| (entry.kind, entry.response.get().to_owned()))
        .collect();
    assert_eq!(
        recorded[0],
        (
            EntryKind::Elicit,
            r#"{"action":"accept","content":{}}"#.to_owned()
        )
    );
    assert_eq!(recorded[1], (EntryKind::Roots, right["r"].get().to_owned()));
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
