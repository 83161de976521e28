//! Ids of tasks, and of calls that may become tasks.

use mcp_tasks_core::TaskId;
use rmcp::ErrorData;

/// A new id, of 128 random bits.
///
/// # Errors
/// When the system's generator fails.
pub(crate) fn new_id() -> Result<TaskId, ErrorData> {
    let mut entropy = [0; 16];
    getrandom::fill(&mut entropy).map_err(|error| {
        tracing::error!(%error, "the system's random generator failed");
        ErrorData::internal_error("no task id could be made", None)
    })?;
    Ok(TaskId::from_entropy(entropy))
}
