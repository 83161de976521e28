//! What calls come to.

use mcp_tasks_core::{InputRequest, Json, Ledger, TaskId};
use rmcp::ErrorData;
use rmcp::model::CallToolResult;

use super::SynchronousCall;
use super::round::Round;
use crate::run::ending::Ending;
use crate::run::errors::{cancelled, report_mismatch};
use crate::run::origin::RequestOrigin;

/// What a call came to.
#[derive(Debug)]
pub(crate) enum CallOutcome {
    Result(Box<CallToolResult>),
    /// The client is asked, and brings the state back along with its answers.
    InputRequired {
        open: Vec<InputRequest>,
        state: String,
    },
    /// The body goes on as a task.
    Deferred(DeferredCall),
}

/// A call that is to become a task.
#[derive(Debug)]
pub(crate) struct DeferredCall {
    /// The id of the call, which becomes the task's.
    pub(crate) id: TaskId,
    pub(crate) arguments: Json,
    pub(crate) origin: RequestOrigin,
    /// What the call was told and did so far.
    pub(crate) ledger: Ledger,
}

/// The outcome of a call whose last run ended so.
pub(super) fn end_call(ending: Ending, call: SynchronousCall<'_>, round: Round) -> Result<CallOutcome, ErrorData> {
    match ending {
        Ending::Returned(Ok(result)) => Ok(CallOutcome::Result(Box::new(result))),
        Ending::Returned(Err(error)) => error.into_outcome().map(|result| CallOutcome::Result(Box::new(result))),
        Ending::Deferred(ledger) => {
            let arguments = Json::of(&call.arguments)
                .map_err(|error| ErrorData::invalid_params(format!("arguments: {error}"), None))?;
            Ok(CallOutcome::Deferred(DeferredCall {
                id: round.id,
                arguments,
                origin: call.origin,
                ledger,
            }))
        }
        Ending::Diverged(mismatch) => Err(report_mismatch(mismatch, None, call.tool)),
        Ending::Panicked(panic) => {
            tracing::error!(panic, tool = %call.tool.name, "the tool panicked");
            Err(ErrorData::internal_error("The tool failed unexpectedly", None))
        }
        Ending::Faulted(fault) => {
            tracing::error!(%fault, tool = %call.tool.name, "the tool's body is wrong");
            Err(ErrorData::internal_error(format!("Internal error: {fault}"), None))
        }
        Ending::Cancelled => Err(cancelled()),
        ending => {
            tracing::error!(?ending, tool = %call.tool.name, "a call ended in a way it cannot");
            Err(ErrorData::internal_error("Internal error", None))
        }
    }
}
