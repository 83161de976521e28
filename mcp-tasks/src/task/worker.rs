//! Starts the executions of this node.

use std::fmt;
use std::sync::Arc;

use mcp_tasks_core::{Change, Claim, StoreError, TaskId, TaskRecord, TaskStatus, Updated};

use super::admission::{Admission, Slot};
use super::executions::{Executions, PendingStart};
use super::first_write::FirstWrite;
use super::grace::GracePeriod;
use super::leases::Leases;
use super::patience::REQUEST_PATIENCE;
use super::records::TaskRecords;
use super::unconfirmed::{OnEffect, Reconciler};
use super::wake_queue::WakeQueue;
use crate::tool::registry::{Placement, RegisteredTool, Registry};
use crate::tool::state::StateMap;
use execution::Execution;

mod execution;
mod record_sink;

/// Runs executions; cloning shares it.
#[derive(Clone)]
pub(crate) struct Worker {
    parts: Arc<WorkerParts>,
}

/// What executions work with.
pub(crate) struct WorkerParts {
    /// Whether this node runs tasks; one that does not speaks the protocol alone, and leaves them to others.
    pub(crate) is_enabled: bool,
    pub(crate) registry: Arc<Registry>,
    pub(crate) states: Arc<StateMap>,
    pub(crate) records: Arc<TaskRecords>,
    pub(crate) executions: Arc<Executions>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) wake_queue: Arc<WakeQueue>,
    pub(crate) reconciler: Arc<Reconciler>,
    pub(crate) first_write: Arc<FirstWrite>,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("is_enabled", &self.parts.is_enabled)
            .finish_non_exhaustive()
    }
}

impl Worker {
    pub(crate) fn new(parts: WorkerParts) -> Self {
        Self { parts: Arc::new(parts) }
    }

    /// Whether this node runs tasks.
    pub(crate) fn is_enabled(&self) -> bool {
        self.parts.is_enabled
    }

    /// Whether a new task of this tool is left to whichever node takes it on.
    pub(crate) fn hands_over(&self, tool: &RegisteredTool) -> bool {
        !self.is_enabled() || tool.placement == Placement::Any
    }

    /// Whether this node would run this task.
    pub(crate) fn runs(&self, record: &TaskRecord) -> bool {
        self.is_enabled() && !self.parts.executions.is_closing() && self.parts.registry.get(&record.tool).is_some()
    }

    /// Starts the execution that `record` names: in its slot, or else in the next that is free. With a `grace` period there
    /// is no such record in the store yet.
    pub(crate) fn start(&self, record: Arc<TaskRecord>, grace: Option<Arc<GracePeriod>>, slot: Option<Slot>) {
        let registration = self.parts.executions.register(&record);
        let execution = Execution::new(self.clone(), record, registration, grace);
        tokio::spawn(execution.run(slot));
    }

    /// What is done about a write that starts an execution of a task here, once it is known to have taken effect.
    pub(crate) fn start_on_effect(&self, pending: PendingStart) -> OnEffect {
        let worker = self.clone();
        OnEffect::Start(Box::new(move |record| {
            worker.start(record, None, None);
            drop(pending);
        }))
    }

    /// Writes what may start an execution under a claim of this node, and starts it if it did, in this slot or the next free
    /// one. Where the acknowledgement does not come, or is not waited for any more, the execution is started once the write
    /// is known to have taken effect.
    pub(crate) async fn claim_and_start(
        &self,
        id: &TaskId,
        slot: Option<Slot>,
        mutation: impl Fn(&TaskRecord, &Claim) -> Change + Send + Sync + 'static,
    ) -> Result<Option<Updated>, StoreError> {
        let WorkerParts {
            records,
            executions,
            reconciler,
            ..
        } = &*self.parts;
        let (claim, write) = (records.claim(), records.write_id());
        // From before the write until the execution is registered a cancellation has to be heard of.
        let start = self.start_on_effect(executions.pending_start(id));
        let unconfirmed = reconciler.track(id, write, claim.lease_until, start);
        let updated = records
            .write_as(write, id, REQUEST_PATIENCE, move |record| mutation(record, &claim))
            .await?;
        if let Some(updated) = &updated
            && updated.applied
            && updated.record.status == TaskStatus::Working
        {
            self.start(updated.record.clone(), None, slot);
        }
        unconfirmed.outcome_known();
        Ok(updated)
    }
}
