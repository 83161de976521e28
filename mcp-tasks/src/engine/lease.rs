//! Leases: a node vouches for the executions it runs, and another takes over what nobody vouches for any more.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mcp_tasks_core::{Json, StoreError, TaskRecord, Timestamp};
use rmcp::ErrorData;

use super::birth::Birth;
use super::claim::TakenOn;
use super::driver::Ending;
use super::write::REQUEST_PATIENCE;
use super::{Engine, error_chain, lock};
use crate::clock::Timer;
use crate::descriptor::OnCrash;

/// How often a lease is renewed in its time: one renewal may be lost, and another late, before it is over.
const RENEWALS: u32 = 3;

/// How many abandoned tasks one look of the recovery takes on: enough for a node that died, few enough that nodes which
/// look at the same time share them.
const RECOVERED_AT_ONCE: usize = 100;

/// The most that one look takes on beside what is for other nodes and found each time: some megabytes of records.
const LEFT_AT_MOST: usize = 10_000;

/// The words for a task whose node is gone and that is not run again.
const LOST: &str = "The server that worked on this task stopped before it was done";

impl Engine {
    /// Looks after the record of an execution while its body runs: renews the lease, and resolves when the run has to
    /// stop, with how it ends: the task has expired, or it ended or goes on elsewhere.
    pub(super) async fn watch(&self, record: &TaskRecord, birth: Option<&Birth>) -> Ending {
        let lease = self.inner.settings.lease;
        let epoch = record.execution.epoch;
        let mut deadline = record.deadline();
        let mut lease_until = self.now().saturating_add(lease);
        loop {
            // One millisecond more: at the deadline itself the task is still there.
            let left = deadline.map(|at| at.saturating_since(self.now()) + Duration::from_millis(1));
            let wait = left.map_or(lease / RENEWALS, |left| left.min(lease / RENEWALS));
            // The clock counts whole milliseconds.
            let wait = wait.max(Duration::from_millis(1));
            let timer = self.inner.clock.timer(self.now().saturating_add(wait));
            if let Some(ending) = self.wait_or_lose(record, timer).await {
                return ending;
            }
            if birth.is_some_and(|birth| !birth.is_born()) {
                // There is no record yet, and so nobody who could take it over.
                lease_until = self.now().saturating_add(lease);
                continue;
            }
            let until = self.now().saturating_add(lease);
            let patience = lease_until.saturating_since(self.now());
            match self
                .write(&record.task_id, patience, move |r| r.renewed(epoch, until))
                .await
            {
                Ok(Some(updated)) if updated.record.is_owned_by(epoch) => {
                    deadline = updated.record.deadline();
                    lease_until = until;
                }
                Ok(Some(_)) => return Ending::Fenced,
                Ok(None) => return Ending::Expired,
                Err(error) if self.now() > lease_until => {
                    tracing::error!(
                        error = %error_chain(&error),
                        "the lease ran out while the task store could not be reached; the execution is given up"
                    );
                    return Ending::Fenced;
                }
                Err(error) => {
                    tracing::warn!(error = %error_chain(&error), "the lease of an execution could not be renewed");
                }
            }
        }
    }

    /// Waits for `timer`, and looks at the record whenever somebody else has written it. Returns how the run ends if it is
    /// no longer this execution's: a cancellation on another node stops the work here at once.
    async fn wait_or_lose(&self, record: &TaskRecord, mut timer: Timer) -> Option<Ending> {
        let changed = lock(&self.inner.running)
            .get(&record.task_id)
            .map(|running| running.changed.clone())
            .unwrap_or_default();
        loop {
            tokio::select! {
                () = &mut timer => return None,
                () = changed.notified() => {}
            }
            match self.inner.store.get(&record.task_id, self.now()).await {
                Ok(Some(present)) if present.is_owned_by(record.execution.epoch) => {}
                Ok(Some(present)) => {
                    if present.status.is_terminal() {
                        self.inner.quota.give_back(&present);
                    }
                    return Some(Ending::Fenced);
                }
                Ok(None) => return Some(Ending::Expired),
                // The next renewal will tell.
                Err(error) => {
                    tracing::debug!(error = %error_chain(&error), "cannot tell whether the task went on elsewhere");
                }
            }
        }
    }

    /// Whether nobody vouches for the task's execution any more, this node included.
    pub(super) fn is_abandoned(&self, record: &TaskRecord, now: Timestamp) -> bool {
        record.is_abandoned(now) && !lock(&self.inner.running).contains_key(&record.task_id)
    }

    /// Takes over a task that nobody vouches for: runs it again, or ends it, as its tool says; one that only slept goes on.
    /// Of several nodes that come by at the same time one does so.
    pub(super) async fn recover(&self, record: &TaskRecord) -> Result<TakenOn, StoreError> {
        if record.execution.idle.is_some() {
            return self.take_on(record).await;
        }
        let now = self.now();
        let tool = self.inner.registry.get(&record.tool);
        let replays = tool.is_some_and(|tool| tool.descriptor.on_crash() == OnCrash::Replay);
        let node = record.execution.node.as_deref().unwrap_or("unknown").to_owned();
        if replays {
            let claim = self.claim();
            let claimed = self.write(&record.task_id, REQUEST_PATIENCE, move |r| r.claimed(now, &claim));
            let updated = claimed.await?;
            if let Some(updated) = updated.filter(|updated| updated.applied) {
                tracing::warn!(task_id = %record.task_id, tool = %record.tool, node, "a task whose node is gone is run again");
                self.spawn_execution(updated.record, None);
            }
            return Ok(TakenOn::Settled);
        }
        let error = ErrorData::internal_error("Internal error", None);
        // The members of an error are a number and text: they have a JSON form.
        let Ok(error) = Json::of(&error) else {
            return Ok(TakenOn::Settled);
        };
        let abandoned = self.write(&record.task_id, REQUEST_PATIENCE, move |r| {
            r.abandoned(now, &error, LOST)
        });
        let updated = abandoned.await?;
        if let Some(updated) = updated.filter(|updated| updated.applied) {
            tracing::warn!(task_id = %record.task_id, tool = %record.tool, node, "a task whose node is gone has failed");
            self.ended(&updated.record, now);
        }
        Ok(TakenOn::Settled)
    }

    /// Starts what goes on beside requests, once, on the runtime that comes by first: removing what has expired, and
    /// taking over what other nodes left behind, at start-up and then once in every lease.
    pub(crate) fn start_background(&self) {
        // Every request comes by: all but the first only read.
        if self.inner.background.load(Ordering::Acquire) || self.inner.background.swap(true, Ordering::AcqRel) {
            return;
        }
        self.start_sweeping();
        self.start_hearing();
        self.start_waking();
        if self.inner.store.as_expired_leases().is_none() {
            return;
        }
        let inner = Arc::downgrade(&self.inner);
        let (lease, closing) = (self.inner.settings.lease, self.inner.closing.clone());
        tokio::spawn(async move {
            let mut left = 0;
            loop {
                let Some(inner) = inner.upgrade() else { return };
                let engine = Self { inner };
                left = engine.recover_abandoned(left).await;
                drop(engine);
                tokio::select! {
                    () = closing.cancelled() => return,
                    () = tokio::time::sleep(lease) => {}
                }
            }
        });
    }

    /// Looks for what nobody vouches for. `left` is how many the look before left to other nodes, which are found again
    /// and must not hide the others; returns how many this one has.
    async fn recover_abandoned(&self, left: usize) -> usize {
        let Some(leases) = self.inner.store.as_expired_leases() else {
            return 0;
        };
        let limit = RECOVERED_AT_ONCE + left.min(LEFT_AT_MOST);
        let mut left = 0;
        let failed = |error: StoreError| {
            tracing::warn!(error = %error_chain(&error), "could not look for tasks whose node is gone; trying again later");
        };
        match leases.expired_leases(self.now(), limit).await {
            Ok(records) => {
                for record in records {
                    if !self.is_abandoned(&record, self.now()) {
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
