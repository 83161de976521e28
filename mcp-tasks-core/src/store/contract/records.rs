//! Records for the cases.

use std::sync::Arc;
use std::time::Duration;

use crate::{
    ClientCapabilities, Cursor, Fingerprint, InputKind, Json, Ledger, Question, Suspension, TaskId, TaskRecord,
    Timestamp, WriteId,
};

/// Time to live of records for which it does not matter: long enough that no backend's own clock removes them.
pub(super) const HOUR: u64 = 3_600_000;

/// The instant `millis` after the beginning of 2100: later than any clock, so that no sweep by the clock of the machine
/// takes part.
pub(super) fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(4_102_444_800_000 + millis)
}

/// JSON as it is spelled.
pub(super) fn raw(text: &str) -> Json {
    serde_json::from_str(text).expect("the suite's JSON is JSON")
}

/// A working record, created at `at(0)`, to be written by write 1.
pub(super) fn record(id: &TaskId, ttl_ms: Option<u64>) -> TaskRecord {
    record_at(id, at(0), ttl_ms)
}

pub(super) fn record_at(id: &TaskId, now: Timestamp, ttl_ms: Option<u64>) -> TaskRecord {
    let mut record = TaskRecord::new(
        id.clone(),
        Arc::from("encode"),
        raw(r#"{"uri":"file:///a","height":720}"#),
        ClientCapabilities::new(raw(r#"{"elicitation":{"form":{},"url":{}}}"#)),
        now,
        ttl_ms.map(Duration::from_millis),
        Duration::from_secs(2),
    );
    record.last_write = Some(WriteId::new(1));
    record
}

/// The record as text without the store's stamps: what a store has to keep byte for byte.
pub(super) fn content(record: &TaskRecord) -> String {
    let mut record = record.clone();
    record.version = 0;
    record.last_write = None;
    record.to_json().expect("a record has a JSON form")
}

/// The end of an execution that asked one question, under the key `q`.
pub(super) fn asking() -> Suspension {
    let mut run = Cursor::new(&Ledger::default());
    let ordinal = run.take_ordinal();
    let request = raw(r#"{"method":"roots/list"}"#);
    let print = Fingerprint::of("roots", "q", None);
    let mut question = Question::new(InputKind::Roots, "q", &request, print);
    question.key = Some("q");
    let _ = run.ask(ordinal, &question);
    run.suspend()
}
