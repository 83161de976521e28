//! What a parked task costs: a server that holds hundreds of thousands of them holds nothing but this.

use std::alloc::System;
use std::sync::Arc;
use std::time::Duration;

use cap::Cap;
use mcp_tasks_core::{
    Claim, ClientCapabilities, Cursor, EntryKind, Fingerprint, InputKind, Json, Ledger, MemoryStore, Question, TaskId,
    TaskRecord, TaskStore, Timestamp, WriteId,
};

#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

const TASKS: usize = 10_000;
/// Bytes of heap a parked task may take in the memory store, the store's own tables included.
const MOST: usize = 1_536;

fn raw(text: &str) -> Json {
    serde_json::from_str(text).unwrap()
}

fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(output) => output,
        std::task::Poll::Pending => panic!("the memory store never waits"),
    }
}

/// What all tasks of a server share.
struct Shared {
    tool: Arc<str>,
    capabilities: ClientCapabilities,
    claim: Claim,
}

/// A task with a step of 20 bytes in its ledger, and one form of one field open: created, claimed, parked.
fn park(store: &MemoryStore, shared: &Shared, number: usize) {
    let now = Timestamp::from_millis(1_785_196_800_000);
    let id = TaskId::from_entropy((number as u128).to_be_bytes());
    let arguments = format!(r#"{{"uri":"https://cdn.example/in/{number:016}.mp4","height":"720p"}}"#);
    let mut record = TaskRecord::new(
        id.clone(),
        shared.tool.clone(),
        raw(&arguments),
        shared.capabilities.clone(),
        now,
        Some(Duration::from_secs(3600)),
        Duration::from_secs(2),
    );
    record.execution.node = Some(shared.claim.node.clone());
    record.execution.lease_until = Some(shared.claim.lease_until);
    record.last_write = Some(WriteId::new(1));
    ready(store.create(record)).unwrap();

    let mut run = Cursor::new(&Ledger::default());
    let step = run.take_ordinal();
    let print = Fingerprint::of("step", "probe", None);
    assert!(run.begin_step());
    run.finish_step(step, "probe", print, raw(r#"{"minutes":12345678}"#));
    let written = run.ledger();
    run.saved(&written);
    let _ = run.look(step, EntryKind::Step, "probe", print);
    let question = run.take_ordinal();
    let request = raw(
        r#"{"method":"elicitation/create","params":{"mode":"form","message":"12 min. Go?","requestedSchema":{"type":"object","properties":{"publish":{"type":"boolean"}},"required":["publish"]}}}"#,
    );
    let print = Fingerprint::of("elicit", "", None);
    let _ = run.ask(
        question,
        &Question::new(InputKind::Form, "12 min. Go?", &request, print),
    );
    let suspension = run.suspend();
    let parked = ready(store.update(
        &id,
        now,
        WriteId::new(2),
        Arc::new(move |record| record.suspended(1, now, &suspension, None)),
    ));
    assert!(parked.unwrap().unwrap().applied);
}

#[test]
fn a_parked_task_takes_at_most_a_kilobyte_and_a_half() {
    let shared = Shared {
        tool: Arc::from("encode"),
        capabilities: ClientCapabilities::new(raw(r#"{"elicitation":{"form":{},"url":{}}}"#)),
        claim: Claim::new("node-a".into(), Timestamp::from_millis(1_785_196_830_000)),
    };
    let store = MemoryStore::new();
    park(&store, &shared, usize::MAX);
    let before = HEAP.allocated();
    for number in 0..TASKS {
        park(&store, &shared, number);
    }
    let each = (HEAP.allocated() - before) / TASKS;
    println!("a parked task takes {each} bytes of heap ({TASKS} tasks)");
    assert!(each <= MOST, "{each} bytes");
    assert_eq!(store.len(), TASKS + 1);
}
