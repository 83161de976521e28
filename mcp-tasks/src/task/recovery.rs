//! Taking on tasks that no node runs: their node is gone, they sleep and it is time, or they are for whichever node has their
//! tool.
//!
//! Such a task is met in four ways: this node put it to sleep, or accepted its call or its answers; the store's feed tells of
//! it; a look for expired leases finds it; its owner asks for it. All of them come down to one claim, which one node makes.

use std::sync::Arc;

use mcp_tasks_core::{Change, Json, StoreError, TaskId, TaskRecord, error_chain};

use super::admission::{Admission, Slot};
use super::claim_queue::ClaimQueue;
use super::executions::Executions;
use super::leases::Leases;
use super::patience::REQUEST_PATIENCE;
use super::records::TaskRecords;
use super::worker::Worker;
use crate::run::errors::internal_error;
use crate::tool::descriptor::OnCrash;
use crate::tool::registry::Registry;

pub(crate) mod jobs;

/// For how many leases a node leaves a task whose tool it does not have to nodes that have it, as there are while a
/// deployment is renewed: they look once in a lease. After that no node has the tool, and the task fails.
const FOREIGN_LEASES: u32 = 3;

/// The words for a task whose node is gone and that is not run again.
const LOST: &str = "The server that worked on this task stopped before it was done";

/// How many abandoned tasks one look takes on: enough for a node that died, few enough that nodes which look at the same time
/// share them.
const RECOVERED_AT_ONCE: usize = 100;

/// The most that one look takes on beside what is for other nodes and found each time: some megabytes of records.
const LEFT_AT_MOST: usize = 10_000;

/// What became of a task that could be taken on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TakenOn {
    /// A node runs it, this one or another that was quicker, or it has ended.
    Settled,
    /// It is for another node: this one does not have its tool, or starts nothing.
    NotHere,
    /// This node runs as many executions as it may.
    Full,
}

/// Takes tasks on that no node runs.
#[derive(Debug)]
pub(crate) struct Recovery {
    pub(crate) registry: Arc<Registry>,
    pub(crate) records: Arc<TaskRecords>,
    pub(crate) executions: Arc<Executions>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) claims: Arc<ClaimQueue>,
    pub(crate) worker: Worker,
}

impl Recovery {
    /// Takes over a task whose lease is over: runs it again, or ends it, as its tool says; one that only slept goes on. Of
    /// several nodes that try at the same time one does so.
    pub(crate) async fn recover(&self, record: &TaskRecord) -> Result<TakenOn, StoreError> {
        if self.executions.is_closing() {
            // It may have been this node's until now: it is for those that stay.
            return Ok(TakenOn::NotHere);
        }
        if record.execution.idle.is_some() {
            return self.take_on_idle(record).await;
        }
        let now = self.records.now();
        let tool = self.registry.get(&record.tool);
        let lease_until = record.execution.lease_until.unwrap_or(now);
        if tool.is_none() && now.saturating_since(lease_until) < self.records.lease() * FOREIGN_LEASES {
            return Ok(TakenOn::NotHere);
        }
        // What no node had begun to run is not run again.
        let is_unbegun = record.execution.node.is_none();
        let replays = tool.is_some_and(|tool| is_unbegun || tool.descriptor.on_crash == OnCrash::Replay);
        if replays && !self.worker.is_enabled() {
            return Ok(TakenOn::NotHere);
        }
        let node = record.execution.node.as_deref().unwrap_or("unknown").to_owned();
        if replays {
            // A node without a free slot leaves it to others, or to its own next look.
            let Some(slot) = self.admission.slots.try_take() else {
                return Ok(TakenOn::Full);
            };
            let claimed = self
                .worker
                .claim_and_start(&record.task_id, Some(slot), move |r, claim| r.claimed(now, claim));
            if claimed.await?.is_some_and(|updated| updated.applied) {
                tracing::warn!(task_id = %record.task_id, tool = %record.tool, node, "a task whose node is gone is run again");
            }
            return Ok(TakenOn::Settled);
        }
        // The members of an error are a number and text: they have a JSON form.
        let Ok(error) = Json::of(&internal_error(LOST)) else {
            return Ok(TakenOn::Settled);
        };
        let abandoned = self.records.write(&record.task_id, REQUEST_PATIENCE, move |r| {
            r.abandoned(now, &error, LOST)
        });
        if let Some(updated) = abandoned.await?.filter(|updated| updated.applied) {
            tracing::warn!(task_id = %record.task_id, tool = %record.tool, node, "a task whose node is gone has failed");
            self.admission.task_ended(&updated.record, now);
        }
        Ok(TakenOn::Settled)
    }

    /// Takes on a task that is idle and whose time has come, if this node has its tool and a slot.
    async fn take_on_idle(&self, record: &TaskRecord) -> Result<TakenOn, StoreError> {
        if !self.worker.runs(record) {
            return Ok(TakenOn::NotHere);
        }
        let Some(slot) = self.admission.slots.try_take() else {
            return Ok(TakenOn::Full);
        };
        self.claim_idle(&record.task_id, slot).await?;
        Ok(TakenOn::Settled)
    }

    /// Claims the task if it is idle, its time has come and this node has its tool, and runs it in `slot`. Of several nodes
    /// that try at the same time one does so.
    async fn claim_idle(&self, id: &TaskId, slot: Slot) -> Result<(), StoreError> {
        let (now, worker) = (self.records.now(), self.worker.clone());
        let claimed = self.worker.claim_and_start(id, Some(slot), move |record, claim| {
            if record.execution.idle.is_some() && worker.runs(record) {
                record.claimed(now, claim)
            } else {
                Change::Keep
            }
        });
        if let Some(updated) = claimed.await?.filter(|updated| updated.applied) {
            tracing::info!(
                task_id = %id,
                tool = %updated.record.tool,
                execution = updated.record.execution.epoch,
                "task taken on"
            );
        }
        Ok(())
    }

    /// Looks for tasks whose lease is over. `left` is how many the look before left to other nodes, which are found again
    /// and must not hide the others; returns how many this one has.
    async fn recover_abandoned(&self, left: usize) -> usize {
        let Some(leases) = self.records.store().as_expired_leases() else {
            return 0;
        };
        let limit = RECOVERED_AT_ONCE + left.min(LEFT_AT_MOST);
        let mut left = 0;
        let failed = |error: StoreError| {
            tracing::warn!(error = %error_chain(&error), "could not look for tasks whose node is gone; trying again later");
        };
        // As long as it takes until the next look, so that a store which never answers does not end the looking.
        let search = leases.expired_leases(self.records.now(), limit);
        let Ok(found) = tokio::time::timeout(self.records.lease(), search).await else {
            tracing::warn!("the task store does not tell which tasks have no node any more; trying again later");
            return left;
        };
        match found {
            Ok(records) => {
                if records.len() >= limit {
                    self.claims.store_has_more();
                }
                for record in records {
                    if !self.leases.is_abandoned(&record, self.records.now()) {
                        continue;
                    }
                    if record.execution.idle.is_some() && self.worker.runs(&record) {
                        self.claims.push(&record.task_id);
                        continue;
                    }
                    match self.recover(&record).await {
                        Ok(TakenOn::Settled) => {}
                        Ok(TakenOn::NotHere | TakenOn::Full) => left += 1,
                        Err(error) => failed(error),
                    }
                }
            }
            Err(error) => failed(error),
        }
        left
    }
}
