//! Leases: a node vouches for the executions it runs, and another takes over what nobody vouches for any more.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mcp_tasks_core::{Json, StoreError, TaskRecord, Timestamp, error_chain};

use super::birth::Birth;
use super::claim::TakenOn;
use super::write::REQUEST_PATIENCE;
use super::{Engine, lock};
use crate::run::clock::Timer;
use crate::run::driver::Ending;
use crate::run::errors::internal_error;
use crate::tool::descriptor::OnCrash;

/// How often a lease is renewed in its time: one renewal may be lost, and another late, before it is over.
const RENEWALS: u32 = 3;

/// How many abandoned tasks one look of the recovery takes on: enough for a node that died, few enough that nodes which
/// look at the same time share them.
const RECOVERED_AT_ONCE: usize = 100;

/// The shortest pause between two looks for abandoned tasks, however much there is to be found: a look may read a hundred
/// records.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

/// The most that one look takes on beside what is for other nodes and found each time: some megabytes of records.
const LEFT_AT_MOST: usize = 10_000;
/// How long a node that stops waits for the store to take its leases back: long enough for a write, short enough that a store
/// which is out of reach does not keep the process.
pub(crate) const RELEASE_PATIENCE: Duration = Duration::from_secs(1);

/// For how many leases a node leaves a task whose tool it does not have to nodes that have it, as there are while a
/// deployment is renewed: they look once in a lease. After that nobody has the tool, and the task fails.
const FOREIGN_LEASES: u32 = 3;

/// The words for a task whose node is gone and that is not run again.
const LOST: &str = "The server that worked on this task stopped before it was done";

impl Engine {
    /// Looks after the record of an execution while its body runs: renews the lease, and resolves when the run has to
    /// stop, with how it ends: the task has expired, or it ended or goes on elsewhere.
    pub(crate) async fn watch(&self, record: &TaskRecord, birth: Option<&Birth>) -> Ending {
        let lease = self.inner.settings.lease;
        let epoch = record.execution.epoch;
        let mut deadline = record.deadline();
        let claimed = record.execution.lease_until;
        let mut lease_until = claimed.unwrap_or_else(|| self.now().saturating_add(lease));
        let mut is_failing = false;
        loop {
            // One millisecond more: at the deadline itself the task is still there.
            let left = deadline.map(|at| at.saturating_since(self.now()) + Duration::from_millis(1));
            let wait = left.map_or(lease / RENEWALS, |left| left.min(lease / RENEWALS));
            // The last look is at the end of the lease: what runs on after it may run elsewhere too.
            let wait = wait.min(lease_until.saturating_since(self.now()));
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
            let mut patience = lease_until.saturating_since(self.now());
            if patience.is_zero() && is_failing {
                tracing::error!("the lease ran out, as the task store did not renew it; the execution is given up");
                return Ending::Fenced;
            }
            // Nobody tried to renew it in time: the process stood still. As long as no other node took the task over it is
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
                    self.inner.quota.see(&updated.record);
                    return Ending::Fenced;
                }
                Ok(None) => return Ending::Expired,
                Err(error) if self.now() >= lease_until => {
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
            // A store that does not answer must not keep the lease from being renewed.
            let present = tokio::select! {
                present = self.read(&record.task_id) => present,
                () = &mut timer => return None,
            };
            match present {
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

    /// Whether nobody vouches for the task's execution any more, this node included. An execution that is left behind here
    /// and does not know it yet says nothing about a later one.
    pub(crate) fn is_abandoned(&self, record: &TaskRecord, now: Timestamp) -> bool {
        record.is_abandoned(now)
            && lock(&self.inner.running)
                .get(&record.task_id)
                .is_none_or(|running| running.epoch < record.execution.epoch)
    }

    /// Gives the lease of an execution that was stopped back, if it is because the node stops: another node then takes the
    /// task over at once. What was `begun` is run again or fails there, as its tool says; the rest is run.
    pub(crate) async fn release(&self, record: &TaskRecord, begun: bool) {
        if !self.inner.stopping.is_cancelled() {
            return;
        }
        let (now, epoch) = (self.now(), record.execution.epoch);
        let released = self.write(&record.task_id, RELEASE_PATIENCE, move |r| match begun {
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

    /// Takes over a task that nobody vouches for: runs it again, or ends it, as its tool says; one that only slept goes on.
    /// Of several nodes that come by at the same time one does so.
    pub(crate) async fn recover(&self, record: &TaskRecord) -> Result<TakenOn, StoreError> {
        if self.inner.closing.is_cancelled() {
            // It may have been this node's until now: it is for those that stay.
            return Ok(TakenOn::NotHere);
        }
        if record.execution.idle.is_some() {
            return self.take_on(record).await;
        }
        let now = self.now();
        let tool = self.inner.registry.get(&record.tool);
        let lease_until = record.execution.lease_until.unwrap_or(now);
        if tool.is_none() && now.saturating_since(lease_until) < self.inner.settings.lease * FOREIGN_LEASES {
            return Ok(TakenOn::NotHere);
        }
        // What no node had begun to run is not run again.
        let is_unbegun = record.execution.node.is_none();
        let replays = tool.is_some_and(|tool| is_unbegun || tool.descriptor.on_crash() == OnCrash::Replay);
        if replays && !self.works() {
            return Ok(TakenOn::NotHere);
        }
        let node = record.execution.node.as_deref().unwrap_or("unknown").to_owned();
        if replays {
            // A node without a free place leaves it to others, or to its own next look.
            let Some(place) = self.inner.places.try_take() else {
                return Ok(TakenOn::Full);
            };
            let claim = self.claim();
            let claimed = self.write_start(&record.task_id, Some(place), claim, move |r, claim| {
                r.claimed(now, claim)
            });
            if claimed.await?.is_some_and(|updated| updated.applied) {
                tracing::warn!(task_id = %record.task_id, tool = %record.tool, node, "a task whose node is gone is run again");
            }
            return Ok(TakenOn::Settled);
        }
        let error = internal_error(LOST);
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
        self.start_claiming();
        if self.inner.store.as_expired_leases().is_none() {
            return;
        }
        let inner = Arc::downgrade(&self.inner);
        let (interval, closing) = (self.look_interval(), self.inner.closing.clone());
        let claims = self.inner.claims.clone();
        tokio::spawn(async move {
            let mut left = 0;
            loop {
                let Some(inner) = inner.upgrade() else { return };
                let engine = Self { inner };
                left = engine.recover_abandoned(left).await;
                drop(engine);
                let wanted = async {
                    tokio::time::sleep(SHORTEST_PAUSE).await;
                    claims.wants_a_look().await;
                };
                tokio::select! {
                    () = closing.cancelled() => return,
                    () = tokio::time::sleep(interval) => {}
                    () = wanted => {}
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
        let claims = &self.inner.claims;
        let limit = RECOVERED_AT_ONCE + left.min(LEFT_AT_MOST);
        let mut left = 0;
        let failed = |error: StoreError| {
            tracing::warn!(error = %error_chain(&error), "could not look for tasks whose node is gone; trying again later");
        };
        // As long as it takes until the next look, so that a store which never answers does not end the looking.
        let search = tokio::time::timeout(self.inner.settings.lease, leases.expired_leases(self.now(), limit));
        let Ok(found) = search.await else {
            tracing::warn!("the task store does not tell which tasks have no node any more; trying again later");
            return left;
        };
        match found {
            Ok(records) => {
                if records.len() >= limit {
                    claims.has_more();
                }
                for record in records {
                    if !self.is_abandoned(&record, self.now()) {
                        continue;
                    }
                    if record.execution.idle.is_some() && self.runs(&record) {
                        self.may_claim(&record.task_id);
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

#[cfg(test)]
mod tests;
