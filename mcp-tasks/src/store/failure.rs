//! Failures that every store has.

use std::time::Duration;

use mcp_tasks_core::{RecordError, StoreError};

/// What would fail again.
pub(super) fn refused(reason: impl Into<String>) -> StoreError {
    StoreError::Refused {
        reason: reason.into(),
        source: None,
    }
}

/// The time an operation may take is over. `who` did not answer.
pub(super) fn late(who: &str, timeout: Duration) -> StoreError {
    StoreError::Unavailable {
        reason: format!("{who} did not answer within {timeout:?}"),
        source: None,
    }
}

/// Warns of a record that a sweep or a search found and cannot read, and that stays where it is.
pub(super) fn warn_unreadable(task_id: &str, place: &str, error: &RecordError) {
    tracing::warn!(
        task_id,
        error = %mcp_tasks_core::error_chain(error),
        "a stored task cannot be read; it is left in {place}"
    );
}
