//! Taking on tasks that work and that nobody runs, though no node died: they sleep, and it is time, or they are for whichever
//! node has their tool.
//!
//! Such a task is met in four ways: this node put it to sleep, or accepted its call or its answers; the store's feed tells of
//! it; a look for expired leases finds it; its owner looks at it. All of them come down to one claim, which one node
//! makes.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_tasks_core::{Change, StoreError, TaskId, TaskRecord, error_chain};
use tokio::sync::{Notify, Semaphore};

use super::places::Place;
use super::sleepers::RETRY;
use super::{Engine, lock};
use crate::tool::registry::{Placement, RegisteredTool};

/// How many claims are made at once: enough that thousands of tasks whose time comes at one instant are soon up, few enough
/// that the store serves others besides.
const CLAIMED_AT_ONCE: usize = 16;

/// How many tasks wait here to be claimed, where the store finds the others again: some hundred kilobytes, and more than a
/// node takes on before it looks for more.
const MOST_WAITING: usize = 4096;

/// How often a store that tells of nothing is looked at for tasks that any node may take on: soon enough that people do not
/// wait for it, and a query of an index that finds nothing costs a store that is near less than a millisecond.
const LOOK: Duration = Duration::from_secs(1);

/// What became of a task that could be taken on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TakenOn {
    /// Somebody runs it, this node or another that was quicker, or it has ended.
    Settled,
    /// It is for another node: this one does not have its tool, or starts nothing.
    NotHere,
    /// This node runs as many executions as it may.
    Full,
}

/// The tasks that this node is about to claim.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    waiting: Mutex<Waiting>,
    added: Notify,
    /// Whether the store has more of them than are waiting here.
    more: AtomicBool,
    /// The store is to be looked at again.
    look: Notify,
}

/// In the order in which they were met, each once.
#[derive(Debug, Default)]
struct Waiting {
    order: VecDeque<TaskId>,
    ids: HashSet<TaskId>,
}

impl Claims {
    /// The task can be claimed. `found_again` is whether the store finds it again if there is no room for it.
    fn add(&self, id: &TaskId, found_again: bool) {
        let mut waiting = lock(&self.waiting);
        if found_again && waiting.order.len() >= MOST_WAITING {
            self.more.store(true, Ordering::Release);
            return;
        }
        if waiting.ids.insert(id.clone()) {
            waiting.order.push_back(id.clone());
            drop(waiting);
            self.added.notify_one();
        }
    }

    fn take(&self) -> Option<TaskId> {
        let mut waiting = lock(&self.waiting);
        let id = waiting.order.pop_front()?;
        waiting.ids.remove(&id);
        Some(id)
    }

    /// The look at the store found as many as it asked for.
    pub(crate) fn has_more(&self) {
        self.more.store(true, Ordering::Release);
    }

    /// Something may have been missed.
    pub(crate) fn look_again(&self) {
        self.look.notify_one();
    }

    /// Resolves when the store is to be looked at again.
    pub(crate) async fn wants_a_look(&self) {
        self.look.notified().await;
    }
}

impl Engine {
    /// Whether this node runs tasks; one that does not speaks the protocol alone, and leaves them to others.
    pub(crate) fn works(&self) -> bool {
        self.inner.settings.work
    }

    /// Whether a new task of this tool is left to whichever node takes it on.
    pub(crate) fn hands_over(&self, tool: &RegisteredTool) -> bool {
        !self.works() || tool.placement == Placement::Any
    }

    /// Whether this node would run this task.
    pub(crate) fn runs(&self, record: &TaskRecord) -> bool {
        self.works() && !self.inner.closing.is_cancelled() && self.inner.registry.get(&record.tool).is_some()
    }

    /// A task that may be claimed, and for all that is known by this node.
    pub(crate) fn may_claim(&self, id: &TaskId) {
        if self.works() {
            let found_again = self.inner.store.as_expired_leases().is_some();
            self.inner.claims.add(id, found_again);
        }
    }

    /// How often the store is looked at for what nobody vouches for.
    pub(crate) fn look_interval(&self) -> Duration {
        let lease = self.inner.settings.lease;
        let is_told = self.inner.store.as_change_feed().is_some();
        let mut tools = self.inner.registry.iter();
        if !is_told && self.works() && tools.any(|tool| tool.placement == Placement::Any) {
            return lease.min(LOOK);
        }
        lease
    }

    /// Claims what may be claimed, as far as this node has places, for as long as the engine is there.
    pub(crate) fn start_claiming(&self) {
        if !self.works() {
            return;
        }
        let claims = self.inner.claims.clone();
        let inner = Arc::downgrade(&self.inner);
        let (closing, gone) = (self.inner.closing.clone(), self.inner.gone.clone());
        let at_once = Arc::new(Semaphore::new(CLAIMED_AT_ONCE));
        tokio::spawn(async move {
            loop {
                let Some(id) = claims.take() else {
                    if claims.more.swap(false, Ordering::AcqRel) {
                        claims.look_again();
                    }
                    tokio::select! {
                        () = closing.cancelled() => return,
                        () = gone.cancelled() => return,
                        () = claims.added.notified() => continue,
                    }
                };
                let Some(engine) = inner.upgrade().map(|inner| Self { inner }) else {
                    return;
                };
                let place = tokio::select! {
                    () = closing.cancelled() => return,
                    place = engine.inner.places.wait() => place,
                };
                // Nobody closes it.
                let Ok(permit) = at_once.clone().acquire_owned().await else {
                    return;
                };
                tokio::spawn(async move {
                    if let Err(error) = engine.claim_idle(&id, place).await {
                        tracing::warn!(task_id = %id, error = %error_chain(&error), "a task could not be taken on");
                        if error.is_retryable() {
                            let later = engine.now().saturating_add(RETRY);
                            engine.inner.sleepers.note(later, &id);
                        }
                    }
                    drop(permit);
                });
            }
        });
    }

    /// Claims the task if it is idle, its time has come and this node has its tool, and runs it in `place`. Of several nodes
    /// that come by at the same time one does so.
    async fn claim_idle(&self, id: &TaskId, place: Place) -> Result<(), StoreError> {
        let (now, engine) = (self.now(), self.clone());
        let claimed = self.write_start(id, Some(place), self.claim(), move |record, claim| {
            if record.execution.idle.is_some() && engine.runs(record) {
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

    /// Takes on a task that is idle and whose time has come, if this node has its tool and a place.
    pub(crate) async fn take_on(&self, record: &TaskRecord) -> Result<TakenOn, StoreError> {
        if !self.runs(record) {
            return Ok(TakenOn::NotHere);
        }
        let Some(place) = self.inner.places.try_take() else {
            return Ok(TakenOn::Full);
        };
        self.claim_idle(&record.task_id, place).await?;
        Ok(TakenOn::Settled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_waits_once_however_often_it_is_met() {
        let claims = Claims::default();
        let (a, b) = (TaskId::new("a"), TaskId::new("b"));
        for id in [&a, &b, &a, &a] {
            claims.add(id, true);
        }
        assert_eq!(
            (claims.take(), claims.take(), claims.take()),
            (Some(a.clone()), Some(b), None)
        );
        claims.add(&a, true);
        assert_eq!(claims.take(), Some(a), "taken, it may come again");
    }

    #[test]
    fn what_there_is_no_room_for_is_looked_for_again_and_never_lost_where_it_cannot_be() {
        let claims = Claims::default();
        for number in 0..=MOST_WAITING {
            claims.add(&TaskId::new(&number.to_string()), true);
        }
        assert_eq!(lock(&claims.waiting).order.len(), MOST_WAITING);
        assert!(claims.more.load(Ordering::Relaxed));
        claims.add(&TaskId::new("here alone"), false);
        assert_eq!(lock(&claims.waiting).order.len(), MOST_WAITING + 1);
    }
}
