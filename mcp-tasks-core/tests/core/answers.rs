//! What becomes of the entries of `inputResponses`.

use mcp_tasks_core::{Change, EntryKind, InputKind, TaskStatus};

use super::records::{at, capabilities, claim, parked, responses, suspension, working, written};

const YES: &str = r#"{"action":"accept","content":{"go":true}}"#;

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
    assert_eq!((answer.ordinal, answer.kind, answer.turn), (2, EntryKind::Elicit, None));
    assert_eq!(answer.response.get(), YES);
    assert_eq!(answer.issued, record.open[1].issued);

    let full = written(half.answered(at(30), &responses(&[("a", YES)]), &new, &claim()));
    assert_eq!(full.status, TaskStatus::Working);
    assert!(full.open.is_empty());
    assert_eq!(full.client_capabilities, new, "of the request that resumes it");
    assert_eq!(full.execution.epoch, 2);
    assert_eq!(full.execution.node.as_deref(), Some("node-b"));
    assert_eq!(full.execution.lease_until, Some(at(30_000)));
    assert_eq!(full.ledger.entries().len(), 3);

    let again = full.answered(at(40), &responses(&[("a", YES), ("b", YES)]), &new, &claim());
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
        ("a", r#"["accept",{"go":true}]"#),
        ("a", r#"["decline"]"#),
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
        let sent: serde_json::Value = serde_json::from_str(&response.replace("1e999", "0")).unwrap();
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
        assert_eq!((again.ordinal, again.issued), (original.ordinal, original.issued));
        assert_eq!(again.fingerprint, original.fingerprint);
        assert_eq!(again.original.as_ref(), Some(&original.request));
        let text = again.request.get();
        let message: serde_json::Value = again.request.decode().unwrap();
        let message = message["params"]["message"].as_str().unwrap();
        assert!(message.ends_with("\n\na?"), "{message}");
        assert!(message.len() > "\n\na?".len(), "the reason stands in front: {message}");
        assert_eq!(message.matches("a?").count(), 1, "one reason at a time: {message}");
        assert!(
            text.contains(r#"{"zeal":{"type":"integer"},"go""#),
            "the form's order stays: {text}"
        );
        assert!(text.contains(r#""x-order":[2,1]"#));
        // The earlier key is gone.
        let stale = record.answered(at(25), &responses(&[(key, YES)]), &capabilities("{}"), &claim());
        assert_eq!(stale, Change::Keep);
    }
    assert_eq!(record.open.len(), 1, "the other question is still open");
    // Content that cannot be read at all is not taken for empty.
    let unread = responses(&[("b", r#"{"action":"accept","content":{"go":true,"zeal":1e999}}"#)]);
    let again = written(record.answered(at(20), &unread, &capabilities("{}"), &claim()));
    assert_eq!(&*again.open[0].key, "b~2");
    assert!(!again.open[0].request.get().contains("is required"));
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
    assert_eq!((record.status, record.execution.epoch), (TaskStatus::Working, 2));
}

#[test]
fn unknown_members_of_a_form_are_ignored_and_a_whole_float_is_an_integer() {
    let answers = responses(&[("a", r#"{"action":"accept","content":{"go":true,"zeal":3.0,"more":1}}"#)]);
    let full = written(parked(&["a"]).answered(at(20), &answers, &capabilities("{}"), &claim()));
    let recorded: serde_json::Value = full.ledger.entries().last().unwrap().response.decode().unwrap();
    assert_eq!(recorded["content"], serde_json::json!({ "go": true, "zeal": 3 }));
}

/// `CreateMessageResult` needs all three (2026-07-28, `schema.ts`).
#[test]
fn a_completion_says_who_says_what_by_which_model() {
    let questions = suspension(&[("s", InputKind::Sampling)]);
    let record = written(working().suspended(1, at(10), &questions, None));
    for wrong in [
        r#"{"content":{},"model":"m"}"#,
        r#"{"role":"assistant","model":"m"}"#,
        r#"{"role":"assistant","content":{}}"#,
        r#"["assistant",{},"m"]"#,
    ] {
        let kept = record.answered(at(20), &responses(&[("s", wrong)]), &capabilities("{}"), &claim());
        assert_eq!(kept, Change::Keep, "{wrong}");
    }
    let right = responses(&[("s", r#"{"role":"assistant","content":{},"model":"m","stopReason":"x"}"#)]);
    let full = written(record.answered(at(20), &right, &capabilities("{}"), &claim()));
    let entry = full.ledger.entries().last().unwrap();
    assert_eq!((entry.kind, &entry.response), (EntryKind::Sample, &right["s"]));
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
        (EntryKind::Elicit, r#"{"action":"accept","content":{}}"#.to_owned())
    );
    assert_eq!(recorded[1], (EntryKind::Roots, right["r"].get().to_owned()));
}
