//! How runs end.

use mcp_tasks_core::{Fault, Ledger, Mismatch, Suspension, Timestamp};
use rmcp::model::CallToolResult;

use crate::tool::error::ToolError;

/// How a run ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The body returned.
    Returned(Result<CallToolResult, ToolError>),
    /// The body waits for answers.
    Suspended(Suspension),
    /// The body waits for nothing but that time goes by, until this instant at least, from this ledger.
    Asleep(Ledger, Timestamp),
    /// The body goes on as a task, from this ledger.
    Deferred(Ledger),
    /// The body left the recorded path.
    Diverged(Mismatch),
    /// The body made a mistake that fails the task.
    Faulted(Fault),
    /// The body panicked, with these words.
    Panicked(String),
    /// The cancellation token fired.
    Cancelled,
    /// Time is up.
    Expired,
    /// The record belongs to another execution, or is terminal or gone: nothing this run does counts any more.
    Fenced,
    /// What the run has to keep is refused where it is to be kept, and would be again.
    Refused,
}
