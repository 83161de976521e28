//! What is stored, and what is done to it.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use mcp_tasks_core::{
    Change, ClientCapabilities, Cursor, Fingerprint, Json, Ledger, Mutation, TaskId, TaskRecord, Timestamp, WriteId,
};

pub(crate) type Bench<T> = Result<T, Box<dyn Error + Send + Sync>>;

const NOW_MILLIS: u64 = 1_800_000_000_000;

pub(crate) const NOW: Timestamp = Timestamp::from_millis(NOW_MILLIS);

pub(crate) const TIME_TO_LIVE: Duration = Duration::from_secs(3_600);

/// When a task is over, as databases have it.
pub(crate) const DEADLINE: i64 = NOW_MILLIS.cast_signed() + 3_600_000;

pub(crate) fn json(text: &str) -> Json {
    serde_json::from_str(text).expect("it is JSON")
}

/// A task in the middle of its work.
pub(crate) fn record(id: &TaskId) -> TaskRecord {
    let arguments = format!(r#"{{"uri":"file:///videos/{}.mov"}}"#, "a".repeat(200));
    let mut record = TaskRecord::new(
        id.clone(),
        "encode".into(),
        json(&arguments),
        ClientCapabilities::new(json(r#"{"elicitation":{"form":{},"url":{}}}"#)),
        NOW,
        Some(TIME_TO_LIVE),
        Duration::from_secs(2),
    );
    record.ledger = ledger();
    record.last_write = Some(WriteId::new(1));
    record
}

fn ledger() -> Ledger {
    let mut run = Cursor::new(&Ledger::default());
    for step in 0..5_u32 {
        let ordinal = run.take_ordinal();
        let name = format!("step-{step}");
        let print = Fingerprint::of("step", &name, None);
        let _ = run.begin_step();
        run.finish_step(ordinal, &name, print, json(&format!(r#"{{"minutes":{step}}}"#)));
    }
    run.suspend().ledger
}

pub(crate) fn touch() -> Mutation {
    Arc::new(|record| {
        let mut next = record.clone();
        next.progress = Some(next.progress.unwrap_or_default() + 1.0);
        Change::Write(Box::new(next))
    })
}

pub(crate) fn complete() -> Mutation {
    let result = json(r#"{"content":[{"type":"text","text":"done"}]}"#);
    Arc::new(move |record| record.completed(1, NOW, &result, None))
}
