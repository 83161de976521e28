//! What a node takes on: how many open tasks of one caller, and how many executions at a time.

use std::time::Duration;

use mcp_tasks_core::{TaskRecord, Timestamp};
use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use serde_json::json;

mod quota;
mod slots;

pub(crate) use quota::Quota;
pub(crate) use slots::{Slot, Slots};

/// The limits of this node.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(crate) quota: Quota,
    pub(crate) slots: Slots,
}

impl Admission {
    /// With these limits (`mcp.tasks.quota.open-per-principal`, `mcp.tasks.quota.running`); without one there is none.
    pub(crate) fn new(open_per_principal: Option<u64>, running: Option<u64>) -> Self {
        Self {
            quota: Quota::new(open_per_principal),
            slots: Slots::new(running),
        }
    }

    /// The task has ended: that is logged, and it no longer counts for its owner.
    pub(crate) fn task_ended(&self, record: &TaskRecord, now: Timestamp) {
        self.quota.release(record);
        tracing::info!(
            task_id = %record.task_id,
            tool = %record.tool,
            status = record.status.as_str(),
            duration_ms = age_ms(record, now),
            "task finished"
        );
    }
}

/// How long ago the task was created, for the log.
pub(crate) fn age_ms(record: &TaskRecord, now: Timestamp) -> u64 {
    u64::try_from(now.saturating_since(record.created_at).as_millis()).unwrap_or(u64::MAX)
}

/// `-31001`: in the range the protocol leaves to implementations.
const QUOTA_EXCEEDED: ErrorCode = ErrorCode(-31001);

/// The answer to a call that would go over a limit; nothing was stored.
fn exceeded(what: &str, limit: u64, retry_after: Duration) -> ErrorData {
    let retry_after = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
    ErrorData::new(
        QUOTA_EXCEEDED,
        format!("Quota exceeded: {what} (at most {limit}); try again later"),
        Some(json!({"retryAfterMs": retry_after})),
    )
}
