//! Leases of executions that are left behind on this node and do not know it yet.

use mcp_tasks_core::{ClientCapabilities, Json, MemoryStore, TaskId};

use super::*;
use crate::TaskRuntime;
use crate::config::Config;
use crate::task::TaskEngine;

const LEASE: Duration = Duration::from_secs(30);

fn engine() -> TaskEngine {
    let runtime = TaskRuntime::builder()
        .without_inventory()
        .config(Config::builder().without_file().build().unwrap())
        .store(Arc::new(MemoryStore::new()))
        .build()
        .unwrap();
    runtime.engine().clone()
}

/// A task in its execution `epoch`, whose lease ends at `until`.
fn record(now: Timestamp, epoch: u64, until: Timestamp) -> TaskRecord {
    let nothing = Json::of(&()).unwrap();
    let capabilities = ClientCapabilities::new(nothing.clone());
    let id = TaskId::new("task");
    let mut record = TaskRecord::new(id, "tool".into(), nothing, capabilities, now, None, LEASE);
    record.execution.epoch = epoch;
    record.execution.lease_until = Some(until);
    record
}

/// What this node runs is not abandoned, however late its renewal is; what is past it and lost elsewhere is, though an
/// earlier execution hangs here.
#[tokio::test]
async fn an_execution_that_is_left_behind_holds_no_lease_of_a_later_one() {
    let engine = engine();
    let now = engine.records.now();
    let late = now.saturating_add(2 * LEASE);
    let until = now.saturating_add(LEASE);
    let _running = engine.executions.register(&record(now, 2, until));
    for (epoch, abandoned) in [(1, false), (2, false), (3, true)] {
        let record = record(now, epoch, until);
        assert_eq!(engine.leases.is_abandoned(&record, late), abandoned, "epoch {epoch}");
        assert!(!engine.leases.is_abandoned(&record, now), "epoch {epoch}");
    }
}
