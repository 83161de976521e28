//! What a request of rmcp's says about its client.

use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;

use super::TaskServer;
use crate::host::extension::{REVISION, TasksExtension};
use crate::host::trace_context::trace_context;
use crate::run::origin::RequestOrigin;
use crate::tool::caller::Caller;

const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

fn declared(context: &RequestContext<RoleServer>) -> Option<&Value> {
    context.meta.0.0.get(CLIENT_CAPABILITIES)
}

/// Whether the request is of a revision without sessions, 2026-07-28 or later.
pub(super) fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= REVISION)
}

/// What this very request says about the extension.
pub(super) fn extension(context: &RequestContext<RoleServer>) -> TasksExtension {
    match declared(context) {
        Some(capabilities) if is_stateless(context) => TasksExtension::of(capabilities),
        _ => TasksExtension::Undeclared,
    }
}

impl<H: ServerHandler> TaskServer<H> {
    /// # Errors
    /// `-32603` if the application's hook panics.
    #[cfg_attr(
        not(feature = "http"),
        expect(
            clippy::unused_self,
            clippy::unnecessary_wraps,
            reason = "on stdio callers are anonymous"
        )
    )]
    pub(super) fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
        #[cfg(feature = "http")]
        if let Some(request) = context.extensions.get::<http::request::Parts>() {
            return self.operations.caller(request);
        }
        #[cfg(not(feature = "http"))]
        let _ = context;
        Ok(Caller::anonymous())
    }

    /// # Errors
    /// As [`caller`](Self::caller).
    pub(super) fn client(&self, context: &RequestContext<RoleServer>) -> Result<RequestOrigin, ErrorData> {
        let cache = self.operations.capabilities();
        let capabilities = match declared(context) {
            Some(capabilities) => cache.share(capabilities),
            None => cache.share(&context.client_capabilities().unwrap_or_default()),
        };
        Ok(RequestOrigin {
            caller: self.caller(context)?,
            capabilities,
            trace: trace_context(context.meta.get_traceparent(), context.meta.get_tracestate()),
        })
    }
}
