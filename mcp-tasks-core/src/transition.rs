//! Transitions: every change a record can go through, as total functions.
//!
//! Each takes the record as it is and says what becomes of it: [`Change::Keep`], or [`Change::Write`] with the record
//! that follows. A terminal record stays as it is whatever comes. What an execution writes is fenced by its epoch: once
//! the record has moved on, the writes of the execution that was left behind change nothing. Time is an argument, so a
//! mutation built from them may run as often as a store likes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::record::millis;
use crate::{
    Answers, ClientCapabilities, Execution, Idle, Json, Ledger, Suspension, TaskRecord, TaskStatus, Timestamp,
};

/// What a mutation makes of a record.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// Nothing: the store writes nothing.
    Keep,
    /// This record; the store stamps its version and write id.
    Write(Box<TaskRecord>),
}

impl Change {
    fn write(record: TaskRecord) -> Self {
        Self::Write(Box::new(record))
    }
}

/// A report of progress, not stored yet.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// How far the work is.
    pub progress: f64,
    /// The words for it, as they go into the status message.
    pub message: Box<str>,
}

impl Report {
    /// A report with the words as they go out.
    #[must_use]
    pub const fn new(progress: f64, message: Box<str>) -> Self {
        Self { progress, message }
    }
}

/// How far in the past the lease of a claimable task ends: the clock of the node that claims it may be behind by as much, and
/// the oldest such task is still found first.
const BACKDATED_BY: Duration = Duration::from_secs(60);

/// The node that runs the execution which a change starts.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Claim {
    /// The node.
    pub node: Arc<str>,
    /// Until when it holds the lease.
    pub lease_until: Timestamp,
}

impl Claim {
    /// A claim by `node` until `lease_until`.
    #[must_use]
    pub const fn new(node: Arc<str>, lease_until: Timestamp) -> Self {
        Self { node, lease_until }
    }
}

/// # Transitions
impl TaskRecord {
    /// Whether the execution of this epoch still owns the record.
    #[must_use]
    pub fn is_owned_by(&self, epoch: u64) -> bool {
        self.status == TaskStatus::Working && self.execution.idle.is_none() && self.execution.epoch == epoch
    }

    /// Whether the task is working and at `now` no node holds its lease: the lease of the node that ran it is over, or it
    /// was [idle](Execution::idle) and its time has come. A node may [claim](Self::claimed) it.
    #[must_use]
    pub fn is_abandoned(&self, now: Timestamp) -> bool {
        self.status == TaskStatus::Working && self.execution.lease_until.is_some_and(|until| now > until)
    }

    fn fenced(&self, epoch: u64, change: impl FnOnce(&mut Self)) -> Change {
        if !self.is_owned_by(epoch) {
            return Change::Keep;
        }
        let mut next = self.clone();
        change(&mut next);
        Change::write(next)
    }

    /// Whether a report is above the highest progress so far; a replay repeats lower ones. A number that is not finite
    /// has no JSON form, and every later report would be below it.
    fn is_above_highest(&self, report: &Report) -> bool {
        report.progress.is_finite() && self.progress.is_none_or(|highest| report.progress > highest)
    }

    /// Applies a report if it is above the highest. Returns whether a client can see a difference.
    fn apply_report(&mut self, report: Option<&Report>) -> bool {
        let Some(report) = report.filter(|report| self.is_above_highest(report)) else {
            return false;
        };
        self.progress = Some(report.progress);
        let changed = self.status_message.as_deref() != Some(&*report.message);
        self.status_message = Some(report.message.clone());
        changed
    }

    fn end(&mut self, status: TaskStatus, now: Timestamp) {
        self.status = status;
        self.last_updated_at = self.last_updated_at.max(now);
        self.ledger = Ledger::default();
        self.open = Vec::new();
        self.leave_idle(None, None);
    }

    /// No node runs the task any more.
    fn leave_idle(&mut self, idle: Option<Idle>, lease_until: Option<Timestamp>) {
        self.set_execution(Execution {
            epoch: self.execution.epoch,
            node: None,
            lease_until,
            idle,
        });
    }

    /// From now on any node may claim the task.
    fn make_claimable(&mut self, now: Timestamp) {
        let before = u64::try_from(BACKDATED_BY.as_millis()).unwrap_or_default();
        let until = Timestamp::from_millis(now.as_millis().saturating_sub(before));
        self.leave_idle(Some(Idle::Unclaimed), Some(until));
    }

    /// The record of a new task that any node with its tool may claim: none runs it until one has
    /// [claimed](Self::claimed) it.
    #[must_use]
    pub fn unclaimed(mut self) -> Self {
        self.execution.epoch = 0;
        self.make_claimable(self.created_at);
        self
    }

    /// Begins a new execution on the node of `claim`, which fences off the executions before.
    fn begin_execution(&mut self, claim: &Claim) {
        self.set_execution(Execution {
            epoch: self.execution.epoch.saturating_add(1),
            node: Some(claim.node.clone()),
            lease_until: Some(claim.lease_until),
            idle: None,
        });
    }

    /// The execution's ledger grew. Clients see no difference, unless a report goes along.
    #[must_use]
    pub fn journaled(&self, epoch: u64, now: Timestamp, ledger: &Ledger, report: Option<&Report>) -> Change {
        self.fenced(epoch, |next| {
            next.ledger = ledger.clone();
            if next.apply_report(report) {
                next.last_updated_at = next.last_updated_at.max(now);
            }
        })
    }

    /// The execution reports progress.
    #[must_use]
    pub fn progressed(&self, epoch: u64, now: Timestamp, report: &Report) -> Change {
        if !self.is_above_highest(report) {
            return Change::Keep;
        }
        self.fenced(epoch, |next| {
            if next.apply_report(Some(report)) {
                next.last_updated_at = next.last_updated_at.max(now);
            }
        })
    }

    /// The execution ends with questions: they become visible, and the task waits. A suspension without questions
    /// changes nothing, as nothing could ever end the wait.
    #[must_use]
    pub fn suspended(&self, epoch: u64, now: Timestamp, suspension: &Suspension, report: Option<&Report>) -> Change {
        if suspension.open.is_empty() {
            return Change::Keep;
        }
        self.fenced(epoch, |next| {
            next.apply_report(report);
            next.status = TaskStatus::InputRequired;
            next.ledger = suspension.ledger.clone();
            next.open = suspension.open.clone();
            next.leave_idle(None, None);
            next.last_updated_at = next.last_updated_at.max(now);
        })
    }

    /// The execution ends because its body waits until `wake`: the task works on, and no process is needed until then.
    /// At `wake` a node [claims](Self::claimed) it. Clients see no difference, unless a report goes along.
    #[must_use]
    pub fn slept(
        &self,
        epoch: u64,
        now: Timestamp,
        wake: Timestamp,
        ledger: &Ledger,
        report: Option<&Report>,
    ) -> Change {
        self.fenced(epoch, |next| {
            next.ledger = ledger.clone();
            if next.apply_report(report) {
                next.last_updated_at = next.last_updated_at.max(now);
            }
            // A lease still holds at its last instant, and at `wake` the wait is over.
            let last = Timestamp::from_millis(wake.as_millis().saturating_sub(1));
            next.leave_idle(Some(Idle::Asleep), Some(last));
        })
    }

    /// The execution ends with a result, `isError` included.
    #[must_use]
    pub fn completed(&self, epoch: u64, now: Timestamp, result: &Json, report: Option<&Report>) -> Change {
        self.fenced(epoch, |next| {
            next.apply_report(report);
            next.end(TaskStatus::Completed, now);
            next.result = Some(result.clone());
        })
    }

    /// The execution ends with a JSON-RPC error; `message` are the words for people.
    #[must_use]
    pub fn failed(&self, epoch: u64, now: Timestamp, error: &Json, message: &str) -> Change {
        self.fenced(epoch, |next| {
            next.end(TaskStatus::Failed, now);
            next.error = Some(error.clone());
            next.status_message = Some(message.into());
        })
    }

    /// The client cancels the task, whatever it is doing.
    #[must_use]
    pub fn cancelled(&self, now: Timestamp) -> Change {
        if self.status.is_terminal() {
            return Change::Keep;
        }
        let mut next = self.clone();
        next.end(TaskStatus::Cancelled, now);
        Change::write(next)
    }

    /// The execution moves the deadline: the task now lives for `ttl` from its creation, or for ever.
    #[must_use]
    pub fn extended(&self, epoch: u64, now: Timestamp, ttl: Option<Duration>) -> Change {
        let ttl_ms = ttl.map(millis);
        if ttl_ms == self.ttl_ms {
            return Change::Keep;
        }
        self.fenced(epoch, |next| {
            next.ttl_ms = ttl_ms;
            next.last_updated_at = next.last_updated_at.max(now);
        })
    }

    /// The execution's node holds the lease until `until`. Clients see no difference.
    #[must_use]
    pub fn renewed(&self, epoch: u64, until: Timestamp) -> Change {
        self.fenced(epoch, |next| next.execution.lease_until = Some(until))
    }

    /// The execution's node stops before the work is done, and gives the lease back: at `now` the task is abandoned, and
    /// another node need not wait for the end of the lease. A new epoch fences off later writes of this node. Clients see no
    /// difference.
    #[must_use]
    pub fn released(&self, epoch: u64, now: Timestamp) -> Change {
        self.fenced(epoch, |next| {
            next.execution.epoch = next.execution.epoch.saturating_add(1);
            next.execution.lease_until = Some(Timestamp::from_millis(now.as_millis().saturating_sub(1)));
        })
    }

    /// As [`released`](Self::released), before the execution has begun: the record names no node then, and the next
    /// execution does nothing twice.
    #[must_use]
    pub fn released_unbegun(&self, epoch: u64, now: Timestamp) -> Change {
        match self.released(epoch, now) {
            Change::Write(mut next) => {
                next.execution.node = None;
                Change::Write(next)
            }
            Change::Keep => Change::Keep,
        }
    }

    /// A node claims a task whose lease has run out, or whose time to be claimed has come: a new execution on the node of
    /// `claim` fences off the one before. Clients see no difference.
    #[must_use]
    pub fn claimed(&self, now: Timestamp, claim: &Claim) -> Change {
        if !self.is_abandoned(now) {
            return Change::Keep;
        }
        let mut next = self.clone();
        next.begin_execution(claim);
        Change::write(next)
    }

    /// A task whose node let its lease run out ends with a JSON-RPC error; `message` are the words for people. One that
    /// was [idle](Execution::idle) has lost no node, and stays as it is.
    #[must_use]
    pub fn abandoned(&self, now: Timestamp, error: &Json, message: &str) -> Change {
        if !self.is_abandoned(now) || self.execution.idle.is_some() {
            return Change::Keep;
        }
        self.failed(self.execution.epoch, now, error, message)
    }

    /// The client answers. Answers to open questions are kept, everything else is ignored; when none is open any more
    /// the task works again, in a new execution that `claim` names, with `capabilities` in place of the earlier ones.
    ///
    /// Only the write that changes the status starts an execution: it returns a record that is `working`.
    ///
    /// An accepted form that does not fit its schema is asked again under `<key>~2`, `<key>~3`, with the reason in
    /// front of the question; then the body is told. An entry that is no answer at all leaves its question open.
    #[must_use]
    pub fn answered(
        &self,
        now: Timestamp,
        responses: &BTreeMap<String, Json>,
        capabilities: &ClientCapabilities,
        claim: &Claim,
    ) -> Change {
        self.apply_answers(now, responses, capabilities, Some(claim))
    }

    /// As [`answered`](Self::answered), and any node may claim the task that works again.
    #[must_use]
    pub fn answered_unclaimed(
        &self,
        now: Timestamp,
        responses: &BTreeMap<String, Json>,
        capabilities: &ClientCapabilities,
    ) -> Change {
        self.apply_answers(now, responses, capabilities, None)
    }

    fn apply_answers(
        &self,
        now: Timestamp,
        responses: &BTreeMap<String, Json>,
        capabilities: &ClientCapabilities,
        claim: Option<&Claim>,
    ) -> Change {
        if self.status != TaskStatus::InputRequired {
            return Change::Keep;
        }
        let answers = Answers::apply(&self.ledger, &self.open, responses);
        if !answers.changed {
            return Change::Keep;
        }
        let mut next = self.clone();
        next.ledger = answers.ledger;
        next.open = answers.open;
        next.last_updated_at = next.last_updated_at.max(now);
        if next.open.is_empty() {
            next.status = TaskStatus::Working;
            next.client_capabilities = capabilities.clone();
            match claim {
                Some(claim) => next.begin_execution(claim),
                None => next.make_claimable(now),
            }
        }
        Change::write(next)
    }
}
