//! How many tasks a caller may have that have not ended.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use mcp_tasks_core::{Principal, TaskId, TaskRecord, Timestamp};
use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use serde_json::json;

use super::lock;

/// `-31001`: in the range the protocol leaves to implementations.
const QUOTA_EXCEEDED: ErrorCode = ErrorCode(-31001);

/// The answer to a call that would go over a quota; nothing was minted.
pub(crate) fn exceeded(what: &str, limit: u64, retry_after: Duration) -> ErrorData {
    let retry_after = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
    ErrorData::new(
        QUOTA_EXCEEDED,
        format!("Quota exceeded: {what} (at most {limit}); try again later"),
        Some(json!({"retryAfterMs": retry_after})),
    )
}

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
    pub(crate) fn take(&self, record: &TaskRecord, retry_after: Duration) -> Result<(), ErrorData> {
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

    /// Counts a task no more: it ended, or was not created after all.
    pub(crate) fn give_back(&self, record: &TaskRecord) {
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

    /// Goes by what a record says now: a task that ended elsewhere counts no more, and one whose deadline was moved counts
    /// until then.
    pub(crate) fn see(&self, record: &TaskRecord) {
        if self.limit.is_none() {
            return;
        }
        if record.status.is_terminal() {
            return self.give_back(record);
        }
        let mut open = lock(&self.open);
        let counted = open.get_mut(&owner(record.principal.as_deref()));
        if let Some(deadline) = counted.and_then(|tasks| tasks.get_mut(&record.task_id)) {
            *deadline = record.deadline();
        }
    }

    /// Counts expired tasks no more.
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
