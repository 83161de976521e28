//! How many open tasks one caller may have.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use mcp_tasks_core::{Principal, TaskId, TaskRecord, Timestamp};
use rmcp::ErrorData;

use super::exceeded;
use crate::task::lock;

type Owner = Option<(Option<Box<str>>, Box<str>)>;

/// Counts the open tasks of each caller that this node created. Callers without a principal share one count.
#[derive(Debug, Default)]
pub(crate) struct Quota {
    limit: Option<u64>,
    open: Mutex<HashMap<Owner, HashMap<TaskId, Option<Timestamp>>>>,
}

fn owner(principal: Option<&Principal>) -> Owner {
    principal.map(|p| (p.issuer.as_deref().map(Into::into), p.subject.as_ref().into()))
}

impl Quota {
    pub(crate) fn new(limit: Option<u64>) -> Self {
        Self {
            limit,
            open: Mutex::default(),
        }
    }

    /// Counts a task that is about to be created.
    ///
    /// # Errors
    /// When the caller has as many as it may have.
    pub(crate) fn admit(&self, record: &TaskRecord, retry_after: Duration) -> Result<(), ErrorData> {
        let Some(limit) = self.limit else { return Ok(()) };
        let now = record.created_at;
        let mut open = lock(&self.open);
        let tasks = open.entry(owner(record.principal.as_deref())).or_default();
        tasks.retain(|_, deadline| deadline.is_none_or(|deadline| now <= deadline));
        if tasks.len() as u64 >= limit {
            return Err(exceeded("open tasks of this caller", limit, retry_after));
        }
        tasks.insert(record.task_id.clone(), record.deadline());
        Ok(())
    }

    /// Stops counting a task that has ended, or was not created after all.
    pub(crate) fn release(&self, record: &TaskRecord) {
        if self.limit.is_none() {
            return;
        }
        let mut open = lock(&self.open);
        let owner = owner(record.principal.as_deref());
        if let Some(tasks) = open.get_mut(&owner) {
            tasks.remove(&record.task_id);
            if tasks.is_empty() {
                open.remove(&owner);
            }
        }
    }

    /// Counts the task as its record says now: not at all once it has ended, on whichever node, and until its deadline, which
    /// may have been moved.
    pub(crate) fn refresh(&self, record: &TaskRecord) {
        if self.limit.is_none() {
            return;
        }
        if record.status.is_terminal() {
            return self.release(record);
        }
        let mut open = lock(&self.open);
        let counted = open.get_mut(&owner(record.principal.as_deref()));
        if let Some(deadline) = counted.and_then(|tasks| tasks.get_mut(&record.task_id)) {
            *deadline = record.deadline();
        }
    }

    /// Stops counting expired tasks.
    pub(crate) fn forget_expired(&self, now: Timestamp) {
        if self.limit.is_none() {
            return;
        }
        lock(&self.open).retain(|_, tasks| {
            tasks.retain(|_, deadline| deadline.is_none_or(|deadline| now <= deadline));
            !tasks.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use mcp_tasks_core::{ClientCapabilities, Json, TaskStatus};

    use super::*;

    const TTL: Duration = Duration::from_secs(60);

    fn record(id: &str, subject: &str) -> TaskRecord {
        let nothing = Json::of(&()).unwrap();
        let capabilities = ClientCapabilities::new(nothing.clone());
        let now = Timestamp::from_millis(1_000);
        let mut record = TaskRecord::new(
            TaskId::new(id),
            "tool".into(),
            nothing,
            capabilities,
            now,
            Some(TTL),
            TTL,
        );
        record.principal = Some(std::sync::Arc::new(Principal::new(subject)));
        record
    }

    #[test]
    fn a_caller_has_so_many_open_tasks_whatever_others_have() {
        let quota = Quota::new(Some(1));
        let (first, second) = (record("first", "ann"), record("second", "ann"));
        quota.admit(&first, TTL).expect("the first");
        quota.admit(&record("other", "bob"), TTL).expect("of another caller");
        assert_eq!(quota.admit(&second, TTL).unwrap_err().code.0, -31001);
        quota.release(&first);
        quota.admit(&second, TTL).expect("the first has ended");
    }

    #[test]
    fn a_task_that_ended_elsewhere_or_expired_does_not_count() {
        let quota = Quota::new(Some(1));
        let mut first = record("first", "ann");
        quota.admit(&first, TTL).expect("the first");
        first.status = TaskStatus::Cancelled;
        quota.refresh(&first);
        let second = record("second", "ann");
        quota.admit(&second, TTL).expect("the first has ended");
        quota.forget_expired(second.created_at.saturating_add(2 * TTL));
        assert!(lock(&quota.open).is_empty());
    }
}
