//! What carries a run: a call, or an execution of a task.

use std::fmt;
use std::time::Duration;

use futures::future::BoxFuture;

use crate::tool::error::ToolError;

/// The call or the execution that a run belongs to.
pub(crate) trait Carrier: fmt::Debug + Send + Sync {
    /// Whether it is a task, which keeps the newest report alone and has an id that clients know.
    fn is_task(&self) -> bool;

    /// Lets the task live for at least `ttl` from now. Of a call there is nothing to extend.
    fn extend_ttl(&self, ttl: Duration) -> BoxFuture<'_, Result<(), ToolError>>;
}

/// A call, which lives as long as its request.
#[derive(Debug)]
pub(crate) struct InCall;

impl Carrier for InCall {
    fn is_task(&self) -> bool {
        false
    }

    fn extend_ttl(&self, _: Duration) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// What `ctx.defer()` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deferral {
    /// It is an error: the attribute does not say `defer`.
    Refused,
    /// It ends the run, and the call becomes a task.
    Pending,
    /// It does nothing: the task is there already, or there can be none.
    Done,
}
