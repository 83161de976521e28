//! Records for the tests, in every state.

use std::collections::BTreeMap;
use std::time::Duration;

use mcp_tasks_core::{
    Change, Claim, ClientCapabilities, Cursor, Fingerprint, InputKind, Json, Question, Suspension, TaskId, TaskRecord,
    Timestamp,
};

/// A value as it is spelled.
pub(crate) fn raw(text: &str) -> Json {
    serde_json::from_str(text).unwrap()
}

pub(crate) fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(1_785_196_800_000 + millis)
}

pub(crate) fn capabilities(text: &str) -> ClientCapabilities {
    ClientCapabilities::new(raw(text))
}

pub(crate) fn claim() -> Claim {
    Claim::new("node-b".into(), at(30_000))
}

pub(crate) fn working() -> TaskRecord {
    TaskRecord::new(
        TaskId::new("task-1"),
        "encode".into(),
        raw(r#"{"uri":"a"}"#),
        capabilities(r#"{"elicitation":{}}"#),
        at(0),
        Some(Duration::from_secs(3600)),
        Duration::from_secs(2),
    )
}

/// The form every question here is about.
const FORM: &str =
    r#"{"type":"object","properties":{"zeal":{"type":"integer"},"go":{"type":"boolean"}},"required":["go"]}"#;

/// Questions of these keys and kinds, put by a body that ran a step first.
pub(crate) fn suspension(questions: &[(&str, InputKind)]) -> Suspension {
    let mut run = Cursor::new(&mcp_tasks_core::Ledger::default());
    let step = run.take_ordinal();
    let print = Fingerprint::of("step", "probe", None);
    assert!(run.begin_step());
    run.finish_step(step, "probe", print, raw("12"));
    let written = run.ledger();
    run.saved(&written);
    let _ = run.look(step, mcp_tasks_core::EntryKind::Step, "probe", print);
    for (key, kind) in questions {
        let ordinal = run.take_ordinal();
        let request = match kind {
            InputKind::Form => format!(
                r#"{{"method":"elicitation/create","params":{{"message":"{key}?","requestedSchema":{FORM},"x-order":[2,1]}}}}"#
            ),
            InputKind::Url => format!(
                r#"{{"method":"elicitation/create","params":{{"mode":"url","message":"{key}?","url":"https://a.example"}}}}"#
            ),
            _ => r#"{"method":"roots/list"}"#.to_owned(),
        };
        let request = raw(&request);
        let mut question = Question::new(*kind, key, &request, Fingerprint::of("elicit", key, None));
        question.key = Some(key);
        let _ = run.ask(ordinal, &question);
    }
    run.suspend()
}

pub(crate) fn parked(keys: &[&str]) -> TaskRecord {
    let questions: Vec<_> = keys.iter().map(|key| (*key, InputKind::Form)).collect();
    written(working().suspended(1, at(10), &suspension(&questions), None))
}

#[track_caller]
pub(crate) fn written(change: Change) -> TaskRecord {
    match change {
        Change::Write(record) => *record,
        _ => panic!("the record was kept"),
    }
}

pub(crate) fn responses(entries: &[(&str, &str)]) -> BTreeMap<String, Json> {
    entries
        .iter()
        .map(|(key, response)| ((*key).to_owned(), raw(response)))
        .collect()
}
