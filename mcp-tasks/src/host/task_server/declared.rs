//! What a request says about its client.

use mcp_tasks_core::{Json, TraceContext};
use rmcp::model::{ErrorCode, ProtocolVersion, TASKS_EXTENSION_ID};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};

use super::TaskServer;
use crate::run::origin::RequestOrigin;
use crate::tool::caller::{Caller, Guard};
use crate::tool::error::missing_capability;

pub(crate) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// `-32010`: the protocol has no code for a caller who is known and may not.
const FORBIDDEN: ErrorCode = ErrorCode(-32010);

/// Whether the request is of a revision without sessions, 2026-07-28 or later.
pub(super) fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Whether this very request declares the extension (Tasks extension, "Capability Negotiation"). Neither an earlier
/// request nor an `initialize` counts, and revisions before 2026-07-28 have no extensions.
///
/// # Errors
/// `-32602` when the member is there and is no object.
pub(super) fn declares_tasks(context: &RequestContext<RoleServer>) -> Result<bool, ErrorData> {
    if !is_stateless(context) {
        return Ok(false);
    }
    let declared = context
        .meta
        .0
        .0
        .get(CLIENT_CAPABILITIES)
        .and_then(|capabilities| capabilities.get("extensions"))
        .and_then(|extensions| extensions.get(TASKS_EXTENSION_ID));
    match declared {
        None => Ok(false),
        Some(Value::Object(_)) => Ok(true),
        Some(_) => Err(ErrorData::invalid_params(
            format!("_meta: the value of {TASKS_EXTENSION_ID:?} must be an object"),
            None,
        )),
    }
}

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
const MOST_TRACESTATE: usize = 512;

/// What is kept of a request's trace context.
pub(crate) fn trace_context(parent: Option<&str>, state: Option<&str>) -> Option<TraceContext> {
    let parent = parent.filter(|parent| is_traceparent(parent))?;
    let state = state.filter(|state| state.len() <= MOST_TRACESTATE);
    Some(TraceContext::new(parent.into(), state.map(Into::into)))
}

/// `-32021`: the request does not declare the extension.
pub(super) fn extension_required(message: &'static str) -> ErrorData {
    missing_capability(message, json!({"extensions": {TASKS_EXTENSION_ID: {}}}))
}

/// Refuses a `tasks/*` request that does not declare the extension, whatever its client declared before.
pub(super) fn require_extension(context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
    if declares_tasks(context)? {
        return Ok(());
    }
    Err(undeclared())
}

/// `-32021` for a request about tasks that does not declare the extension.
pub(crate) fn undeclared() -> ErrorData {
    extension_required(
        "Missing required client capability: declare the extension io.modelcontextprotocol/tasks in this request's _meta",
    )
}

/// Asks a tool's guard.
///
/// # Errors
/// `-32010` with the guard's reason.
pub(crate) async fn ask_guard(guard: Option<Guard>, caller: &Caller) -> Result<(), ErrorData> {
    let Some(guard) = guard else { return Ok(()) };
    guard(caller)
        .await
        .map_err(|denied| ErrorData::new(FORBIDDEN, format!("Forbidden: {denied}"), None))
}

impl<H: ServerHandler> TaskServer<H> {
    #[cfg_attr(
        not(feature = "http"),
        expect(clippy::unused_self, reason = "on stdio callers are anonymous")
    )]
    pub(super) fn caller(&self, context: &RequestContext<RoleServer>) -> Caller {
        #[cfg(feature = "http")]
        if let Some(request) = context.extensions.get::<http::request::Parts>() {
            return self.runtime.caller(request);
        }
        #[cfg(not(feature = "http"))]
        let _ = context;
        Caller::anonymous()
    }

    pub(super) fn client(&self, context: &RequestContext<RoleServer>) -> RequestOrigin {
        let declared = match context.meta.0.0.get(CLIENT_CAPABILITIES) {
            Some(capabilities) => Json::of(capabilities),
            None => Json::of(&context.client_capabilities().unwrap_or_default()),
        };
        // Both are JSON objects already, which have a JSON form.
        let capabilities = declared.unwrap_or_else(|_| Json::from(serde_json::value::RawValue::NULL.to_owned()));
        let trace = trace_context(context.meta.get_traceparent(), context.meta.get_tracestate());
        RequestOrigin {
            caller: self.caller(context),
            capabilities,
            trace,
        }
    }
}
