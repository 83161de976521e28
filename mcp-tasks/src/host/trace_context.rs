//! The trace context of a request.

use mcp_tasks_core::TraceContext;

/// Whether it is what W3C Trace Context, version 00, has: the value goes into records and logs, so nothing else may.
fn is_traceparent(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [2, 32, 16, 2]
        && parts
            .concat()
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// The longest `tracestate` that is kept, in bytes: what every vendor must hand on.
const MAX_TRACESTATE: usize = 512;

/// What is kept of a request's trace context.
pub(crate) fn trace_context(parent: Option<&str>, state: Option<&str>) -> Option<TraceContext> {
    let parent = parent.filter(|parent| is_traceparent(parent))?;
    let state = state.filter(|state| state.len() <= MAX_TRACESTATE);
    Some(TraceContext::new(parent.into(), state.map(Into::into)))
}
