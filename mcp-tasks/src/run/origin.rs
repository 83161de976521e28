//! What a request says of where it comes from.

use mcp_tasks_core::{Json, TraceContext};

use crate::tool::caller::Caller;

/// Where a request comes from: whose it is, what its client can be asked, and the trace that it belongs to.
#[derive(Debug, Clone)]
pub(crate) struct RequestOrigin {
    pub(crate) caller: Caller,
    /// The client's capabilities, as the request declares them.
    pub(crate) capabilities: Json,
    pub(crate) trace: Option<TraceContext>,
}
