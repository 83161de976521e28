//! Leases: a node holds one for each execution that it runs, and another node takes a task over once its lease is over.

use std::sync::Arc;
use std::time::Duration;

use mcp_tasks_core::{TaskRecord, Timestamp, error_chain};

use super::admission::Admission;
use super::executions::{Executions, RELEASE_PATIENCE, Registration};
use super::grace::GracePeriod;
use super::patience::REQUEST_PATIENCE;
use super::records::TaskRecords;
use crate::run::clock::Timer;
use crate::run::ending::Ending;

/// How often a lease is renewed in its time: one renewal may be lost, and another late, before it is over.
const RENEWALS: u32 = 3;

/// The leases of the executions of this node.
#[derive(Debug)]
pub(crate) struct Leases {
    records: Arc<TaskRecords>,
    executions: Arc<Executions>,
    admission: Arc<Admission>,
}

impl Leases {
    pub(crate) const fn new(records: Arc<TaskRecords>, executions: Arc<Executions>, admission: Arc<Admission>) -> Self {
        Self {
            records,
            executions,
            admission,
        }
    }

    /// Looks after the record of an execution while its body runs: renews the lease, and resolves when the run has to
    /// stop, with how it ends: the task has expired, or it ended or goes on elsewhere.
    pub(crate) async fn hold(
        &self,
        record: &TaskRecord,
        registration: &Registration,
        grace: Option<&GracePeriod>,
    ) -> Ending {
        let lease = self.records.lease();
        let epoch = record.execution.epoch;
        let mut deadline = record.deadline();
        let claimed = record.execution.lease_until;
        let mut lease_until = claimed.unwrap_or_else(|| self.records.now().saturating_add(lease));
        let mut is_failing = false;
        loop {
            // One millisecond more: at the deadline itself the task is still there.
            let left = deadline.map(|at| at.saturating_since(self.records.now()) + Duration::from_millis(1));
            let wait = left.map_or(lease / RENEWALS, |left| left.min(lease / RENEWALS));
            // The last look is at the end of the lease: what runs on after it may run elsewhere too.
            let wait = wait.min(lease_until.saturating_since(self.records.now()));
            // The clock counts whole milliseconds.
            let wait = wait.max(Duration::from_millis(1));
            let timer = self.records.clock().timer(self.records.now().saturating_add(wait));
            if let Some(ending) = self.wait_or_lose(record, registration, timer).await {
                return ending;
            }
            if grace.is_some_and(|grace| !grace.is_stored()) {
                // There is no record yet, and so no node that could take it over.
                lease_until = self.records.now().saturating_add(lease);
                continue;
            }
            let until = self.records.now().saturating_add(lease);
            let mut patience = lease_until.saturating_since(self.records.now());
            if patience.is_zero() && is_failing {
                tracing::error!("the lease ran out, as the task store did not renew it; the execution is given up");
                return Ending::Fenced;
            }
            // It was not tried in time: the process stood still. As long as no other node took the task over it is
            // this one's all the same, and the store tells.
            let overslept = patience.is_zero();
            if overslept {
                tracing::warn!(
                    "the lease of an execution ended while this process did not run, or its thread was kept busy; asking the \
                     task store whether another node took the task over"
                );
                patience = REQUEST_PATIENCE;
            }
            match self
                .records
                .write(&record.task_id, patience, move |r| r.renewed(epoch, until))
                .await
            {
                Ok(Some(updated)) if updated.record.is_owned_by(epoch) => {
                    if overslept {
                        tracing::info!("no other node took the task over; the execution goes on");
                    }
                    deadline = updated.record.deadline();
                    lease_until = until;
                    is_failing = false;
                }
                Ok(Some(updated)) => {
                    self.admission.quota.refresh(&updated.record);
                    return Ending::Fenced;
                }
                Ok(None) => return Ending::Expired,
                Err(error) if self.records.now() >= lease_until => {
                    tracing::error!(
                        error = %error_chain(&error),
                        "the lease ran out, as the task store did not renew it; the execution is given up"
                    );
                    return Ending::Fenced;
                }
                Err(error) => {
                    is_failing = true;
                    tracing::warn!(error = %error_chain(&error), "the lease of an execution could not be renewed");
                }
            }
        }
    }

    /// Waits for `timer`, and reads the record whenever another node has written it. Returns how the run ends if it is no
    /// longer this execution's: a cancellation on another node stops the work here at once.
    async fn wait_or_lose(&self, record: &TaskRecord, registration: &Registration, mut timer: Timer) -> Option<Ending> {
        loop {
            tokio::select! {
                () = &mut timer => return None,
                () = registration.changed.notified() => {}
            }
            // A store that does not answer must not keep the lease from being renewed.
            let present = tokio::select! {
                present = self.records.read(&record.task_id) => present,
                () = &mut timer => return None,
            };
            match present {
                Ok(Some(present)) if present.is_owned_by(record.execution.epoch) => {}
                Ok(Some(present)) => {
                    if present.status.is_terminal() {
                        self.admission.quota.release(&present);
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

    /// Whether the lease of the task's execution is over and this node does not run it either. An execution that is left behind
    /// here and does not know it yet says nothing about a later one.
    pub(crate) fn is_abandoned(&self, record: &TaskRecord, now: Timestamp) -> bool {
        record.is_abandoned(now) && !self.executions.has_reached(&record.task_id, record.execution.epoch)
    }

    /// Gives the lease of an execution that was stopped back, if it is because the node stops: another node then takes the
    /// task over at once. What was `begun` is run again or fails there, as its tool says; the rest is run.
    pub(crate) async fn release(&self, record: &TaskRecord, begun: bool) {
        if !self.executions.is_stopping() {
            return;
        }
        let (now, epoch) = (self.records.now(), record.execution.epoch);
        let released = self
            .records
            .write(&record.task_id, RELEASE_PATIENCE, move |r| match begun {
                true => r.released(epoch, now),
                false => r.released_unbegun(epoch, now),
            });
        match released.await {
            Ok(Some(updated)) if updated.applied => {
                tracing::info!("the execution was stopped, and its task is left to other nodes");
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(
                    error = %error_chain(&error),
                    "the lease of an execution that was stopped could not be given back; other nodes wait for its end"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests;
