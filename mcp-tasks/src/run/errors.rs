//! The JSON-RPC errors of runs that end without a result, the same in calls and in tasks.

use std::borrow::Cow;

use mcp_tasks_core::{Fingerprint, Mismatch};
use rmcp::ErrorData;

use crate::tool::registry::RegisteredTool;

/// The error of a call that ended before its work did.
pub(crate) fn cancelled() -> ErrorData {
    ErrorData::internal_error("the call was cancelled", None)
}

/// `-32603`, for what is the server's own fault. Of a task the message is also its `statusMessage`: clients show the one
/// or the other.
pub(crate) fn internal_error(words: impl Into<Cow<'static, str>>) -> ErrorData {
    ErrorData::internal_error(words, None)
}

/// Reports a body that does not repeat itself, to the log and, with the error that is returned, to the client.
/// `created_with` is the input schema of the tool when the task was created.
pub(crate) fn report_mismatch(
    mut mismatch: Mismatch,
    created_with: Option<Fingerprint>,
    tool: &RegisteredTool,
) -> ErrorData {
    mismatch.schema_changed = created_with.map(|schema| schema != tool.schema_hash);
    tracing::error!(%mismatch, tool = %tool.name, "the tool does not repeat itself");
    ErrorData::invalid_params(mismatch.to_string(), None)
}
