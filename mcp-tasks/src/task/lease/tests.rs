//! Executions that are left behind on this node and do not know it yet.

use mcp_tasks_core::{ClientCapabilities, MemoryStore, TaskId};

use super::*;
use crate::TaskRuntime;
use crate::config::Config;
use crate::task::Running;

const LEASE: Duration = Duration::from_secs(30);

fn engine() -> Engine {
    let runtime = TaskRuntime::builder()
        .without_inventory()
        .config(Config::builder().without_file().build().unwrap())
        .store(Arc::new(MemoryStore::new()))
        .build()
        .unwrap();
    runtime.engine().clone()
}

/// A task in its execution `epoch`, whose lease ends at `until`.
fn record(engine: &Engine, epoch: u64, until: Timestamp) -> TaskRecord {
    let nothing = Json::of(&()).unwrap();
    let capabilities = ClientCapabilities::new(nothing.clone());
    let (now, id) = (engine.now(), TaskId::new("task"));
    let mut record = TaskRecord::new(id, "tool".into(), nothing, capabilities, now, None, LEASE);
    record.execution.epoch = epoch;
    record.execution.lease_until = Some(until);
    record
}

/// What this node runs is not abandoned, however late its renewal is; what is past it and lost elsewhere is, though an
/// earlier execution hangs here.
#[tokio::test]
async fn an_execution_that_is_left_behind_vouches_for_no_later_one() {
    let engine = engine();
    let now = engine.now();
    let late = now.saturating_add(2 * LEASE);
    let until = now.saturating_add(LEASE);
    let running = Running {
        epoch: 2,
        token: engine.inner.stopping.child_token(),
        written: 0,
        changed: Arc::default(),
    };
    lock(&engine.inner.running).insert(TaskId::new("task"), running);
    for (epoch, abandoned) in [(1, false), (2, false), (3, true)] {
        let record = record(&engine, epoch, until);
        assert_eq!(engine.is_abandoned(&record, late), abandoned, "epoch {epoch}");
        assert!(!engine.is_abandoned(&record, now), "epoch {epoch}");
    }
}

/// A later execution of a task that starts here stops what hangs of an earlier one.
#[tokio::test]
async fn a_later_execution_stops_an_earlier_one() {
    let engine = engine();
    let until = engine.now().saturating_add(LEASE);
    let token_of = |epoch| {
        engine.spawn_execution(Arc::new(record(&engine, epoch, until)), None, None);
        lock(&engine.inner.running)[&TaskId::new("task")].token.clone()
    };
    let first = token_of(1);
    let same = token_of(1);
    assert!(!first.is_cancelled());
    let second = token_of(2);
    assert!(same.is_cancelled() && !second.is_cancelled());
}
