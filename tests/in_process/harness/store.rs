//! The store of the nodes of a test: the memory store behind a script, one that disturbs executions if wanted.

use std::ops::Deref;
use std::sync::Arc;

use mcp_tasks::host::Clock;
use mcp_tasks::testing::TokioClock;
use mcp_tasks_core::{
    Change, Fingerprint, InputKind, InputRequest, Json, Ledger, MemoryStore, TaskId, TaskRecord, TaskStatus, TaskStore,
};
use mcp_tasks_tests::scripted::{Ability, ScriptedStore, scripted};
use serde_json::json;

use super::Mode;

/// The key of the question that ends a disturbed execution.
pub(crate) const REPLAY: &str = "replay";

/// Beyond what any body reaches.
const REPLAY_ORDINAL: u32 = u32::MAX;

/// One node's way to the store that several share. Where it is down, that node looks to the others as one that died.
pub(crate) type Link = ScriptedStore<Arc<ScriptedStore<MemoryStore>>>;

/// A store and the clock of its nodes; a clone is the same one.
#[derive(Debug, Clone)]
pub(crate) struct TestStore {
    memory: Arc<ScriptedStore<MemoryStore>>,
    clock: Arc<TokioClock>,
}

impl Deref for TestStore {
    type Target = ScriptedStore<MemoryStore>;

    fn deref(&self) -> &Self::Target {
        &self.memory
    }
}

impl TestStore {
    pub(crate) fn new(mode: Mode) -> Self {
        let memory = scripted(MemoryStore::new());
        memory.script(|script| {
            script.rewrite = Some(Arc::new(move |record, change| disturbed(mode, record, change)));
        });
        Self {
            memory: Arc::new(memory),
            clock: Arc::new(TokioClock::new()),
        }
    }

    /// What a runtime is given.
    pub(crate) fn shared(&self) -> Arc<dyn TaskStore> {
        self.memory.clone()
    }

    pub(crate) fn clock(&self) -> Arc<TokioClock> {
        self.clock.clone()
    }

    /// A way of one node to this store, with a script of its own.
    pub(crate) fn link(&self) -> Arc<Link> {
        Arc::new(scripted(self.memory.clone()))
    }

    /// A way over which a node is told of nothing, and finds abandoned tasks by looking for those it knows.
    pub(crate) fn scanned_link(&self) -> Arc<Link> {
        let link = self.link();
        link.script(|script| {
            script.hides = &[Ability::ChangeFeed, Ability::Sweep];
            script.scans = true;
        });
        link
    }

    /// Whether no record is there.
    pub(crate) fn is_empty(&self) -> bool {
        self.inner().is_empty()
    }

    /// The record as it is, if it is there.
    pub(crate) async fn find(&self, id: &TaskId) -> Option<Arc<TaskRecord>> {
        let found = self.inner().get(id, self.clock.now()).await;
        found.expect("memory does not fail")
    }

    /// The record as it is.
    pub(crate) async fn record(&self, id: &str) -> Arc<TaskRecord> {
        self.find(&TaskId::new(id)).await.expect("the task is there")
    }
}

/// What is stored instead of `change` where executions are disturbed. A write of a running execution parks the task under
/// a question of the test's own, so that the execution finds itself fenced; the answer to that question is taken out of
/// the ledger again before the next execution sees it. What remains is what a crash after the write would leave.
fn disturbed(mode: Mode, record: &TaskRecord, change: Change) -> Change {
    let Change::Write(mut next) = change else {
        return change;
    };
    match (record.status, next.status) {
        (TaskStatus::Working, TaskStatus::Working)
            if (mode != Mode::Straight && next.ledger != record.ledger)
                || (mode == Mode::Hostile && next.progress != record.progress) =>
        {
            next.status = TaskStatus::InputRequired;
            next.open = vec![question()];
            next.execution.node = None;
            next.execution.lease_until = None;
            next.execution.idle = None;
        }
        (TaskStatus::InputRequired, TaskStatus::Working) => {
            let entries = next.ledger.entries().iter();
            next.ledger = Ledger::new(
                entries
                    .filter(|entry| entry.ordinal != REPLAY_ORDINAL)
                    .cloned()
                    .collect(),
            );
        }
        _ => {}
    }
    Change::Write(next)
}

fn question() -> InputRequest {
    let request = json!({
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": "Go on?",
            "requestedSchema": {"type": "object", "properties": {}},
        },
    });
    InputRequest::new(
        REPLAY_ORDINAL,
        REPLAY.into(),
        InputKind::Form,
        Fingerprint::of("elicit", REPLAY, None),
        Json::of(&request).expect("it is JSON"),
    )
}
