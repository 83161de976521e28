//! The fast path: what clients ask of tasks most, answered in front of rmcp's service.
//!
//! rmcp decodes a request into its types by way of a buffer, makes a handler, a transport and a task of the runtime for it,
//! and serialises its types again: several times the cost of HTTP and JSON. Requests of 2026-07-28 need none of that. The
//! ones that are plainly in order, and about our tools and tasks, are answered here by the same operations and with the same
//! bytes. Everything else is forwarded untouched: other methods, other revisions, and whatever is odd, so that there is one
//! place that says what is wrong with it.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::response::Response;
use futures::future::BoxFuture;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;
use tower_service::Service;

use super::sessions::Sessions;
use crate::host::extension::PROTOCOL_VERSION;
use crate::host::handler::TaskServer;
use crate::host::operations::Operations;
use crate::serve::Factory;
use crate::serve::message::REVISION;
use crate::serve::subscription::LISTEN;

mod accept;
mod body;
mod gate;
mod listen;
mod mcp_name;
mod methods;
mod response;

use gate::Gate;

type RmcpService<H> = StreamableHttpService<TaskServer<H>, Sessions>;

/// A response that is being made.
pub(super) type ResponseFuture = BoxFuture<'static, Result<Response, Infallible>>;

/// rmcp's service with the fast path in front of it; cloning shares it.
pub(super) struct McpService<H> {
    fast_path: Arc<FastPath<H>>,
}

struct FastPath<H> {
    rmcp: RmcpService<H>,
    operations: Operations,
    handler: Factory<H>,
    gate: Gate,
    /// Whether anything is answered here: `mcp.tasks.http.front`.
    is_enabled: bool,
    require_name: bool,
    /// The largest body, in bytes.
    limit: usize,
    stop: CancellationToken,
}

impl<H> Clone for McpService<H> {
    fn clone(&self) -> Self {
        Self {
            fast_path: self.fast_path.clone(),
        }
    }
}

impl<H> fmt::Debug for McpService<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpService").finish_non_exhaustive()
    }
}

impl<H: ServerHandler> McpService<H> {
    pub(super) fn new(operations: Operations, handler: Factory<H>, config: StreamableHttpServerConfig) -> Self {
        let settings = operations.engine().settings();
        let require_name = settings.http_require_name;
        // A handler that does not speak the revision has every request of it refused.
        let versions = TaskServer::new(operations.clone(), handler()).supported_protocol_versions();
        let is_enabled = settings.http_front && versions.contains(&PROTOCOL_VERSION);
        let gate = Gate::new(&config);
        let (limit, stop) = (config.max_request_body_bytes, config.cancellation_token.clone());
        let sessions = Sessions::new(settings.http_session_timeout, settings.http_max_sessions);
        let (shared, make) = (operations.clone(), handler.clone());
        let rmcp = StreamableHttpService::new(
            move || Ok(TaskServer::new(shared.clone(), make())),
            Arc::new(sessions),
            config,
        );
        Self {
            fast_path: Arc::new(FastPath {
                rmcp,
                operations,
                handler,
                gate,
                is_enabled,
                require_name,
                limit,
                stop,
            }),
        }
    }

    /// Answers one request.
    pub(super) fn handle(&self, request: Request) -> ResponseFuture {
        self.fast_path.serve(request)
    }
}

impl<H: ServerHandler> Service<Request> for McpService<H> {
    type Response = Response;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        self.handle(request)
    }
}

/// The methods that are answered here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum McpMethod {
    Get,
    Update,
    Cancel,
    Call,
    Listen,
}

impl McpMethod {
    const fn name(self) -> &'static str {
        match self {
            Self::Get => "tasks/get",
            Self::Update => "tasks/update",
            Self::Cancel => "tasks/cancel",
            Self::Call => "tools/call",
            Self::Listen => LISTEN,
        }
    }

    fn of(name: &str) -> Option<Self> {
        let all = [Self::Get, Self::Update, Self::Cancel, Self::Call, Self::Listen];
        all.into_iter().find(|method| method.name() == name)
    }
}

impl<H: ServerHandler> FastPath<H> {
    fn serve(self: &Arc<Self>, request: Request) -> ResponseFuture {
        let this = self.clone();
        let lacks_name = mcp_name::is_missing(request.headers());
        if lacks_name && self.require_name {
            mcp_name::warn();
            return Box::pin(async move { Ok(this.forward(request).await) });
        }
        let method = self.method(&request);
        if method.is_none() && !lacks_name {
            return Box::pin(async move { Ok(this.forward(request).await) });
        }
        // No `async fn` takes the parts by value: each would keep them twice, and what is moved and allocated for a poll is
        // a good part of what it costs.
        let (mut parts, body) = request.into_parts();
        Box::pin(async move {
            let body = match body::read(body, this.limit).await {
                Ok(body) => body,
                Err(body) => return Ok(this.forward(Request::from_parts(parts, body)).await),
            };
            if lacks_name {
                mcp_name::fill_in(&mut parts.headers, &body);
            }
            if let Some(method) = method
                && let Some(response) = this.answer(method, &parts, &body).await
            {
                return Ok(response);
            }
            Ok(this.forward(Request::from_parts(parts, Body::from(body))).await)
        })
    }

    /// What is to be answered here, as far as the headers tell.
    fn method(&self, request: &Request) -> Option<McpMethod> {
        if !self.is_enabled {
            return None;
        }
        McpMethod::of(self.gate.method(request.method(), request.headers())?)
    }

    /// The answer; `None` leaves the request to rmcp.
    async fn answer(&self, method: McpMethod, parts: &Parts, body: &Bytes) -> Option<Response> {
        // Text in another encoding is no JSON, also where it would be passed over.
        let body = std::str::from_utf8(body).ok()?;
        // The method that is asked most has its future here. The others', and rmcp's, are boxed on their own: they are many times larger,
        // and every request would be given room for the largest.
        match method {
            McpMethod::Get => self.get(parts, body).await,
            McpMethod::Update => Box::pin(self.update(parts, body)).await,
            McpMethod::Cancel => Box::pin(self.cancel(parts, body)).await,
            McpMethod::Call => Box::pin(self.call(parts, body)).await,
            McpMethod::Listen => Box::pin(self.listen(parts, body)).await,
        }
    }

    /// rmcp's answer.
    fn forward(&self, mut request: Request) -> impl Future<Output = Response> {
        accept::name_kinds(request.headers_mut());
        let handled = Box::pin(self.rmcp.handle(request));
        async { handled.await.map(Body::new) }
    }
}
