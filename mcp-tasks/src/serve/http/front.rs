//! The short way: what clients ask of tasks most, answered in front of rmcp's service.
//!
//! rmcp decodes a request into its types by way of a buffer, makes a handler, a transport and a task for it, and prints its
//! types again: several times the cost of HTTP and JSON. Requests of 2026-07-28 need none of that. The ones that are plainly
//! in order, and about our tools and tasks, are answered here with the same checks, the same engine and the same bytes.
//! Everything else goes on untouched: other methods, other revisions, and whatever is odd, so that there is one place that
//! says what is wrong with it.

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
use rmcp::model::ProtocolVersion;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;
use tower_service::Service;

use super::super::Factory;
use super::sessions::Sessions;
use crate::host::handler::TaskServer;
use crate::host::operations::Operations;
use crate::serve::message::REVISION;
use crate::serve::subscription::LISTEN;

mod answer;
mod body;
mod door;
mod listen;
mod methods;
mod name;

use door::Door;

type Behind<H> = StreamableHttpService<TaskServer<H>, Sessions>;

/// A response that is on its way.
pub(super) type Handled = BoxFuture<'static, Result<Response, Infallible>>;

/// rmcp's service with the short way in front of it; cloning shares it.
pub(super) struct Front<H> {
    shared: Arc<Shared<H>>,
}

struct Shared<H> {
    behind: Behind<H>,
    operations: Operations,
    handler: Factory<H>,
    door: Door,
    /// Whether anything is answered here.
    answers: bool,
    require_name: bool,
    /// The largest body, in bytes.
    limit: usize,
    stop: CancellationToken,
}

impl<H> Clone for Front<H> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<H> fmt::Debug for Front<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Front").finish_non_exhaustive()
    }
}

impl<H: ServerHandler> Front<H> {
    pub(super) fn new(operations: Operations, handler: Factory<H>, config: StreamableHttpServerConfig) -> Self {
        let settings = operations.engine().settings();
        let (answers, require_name) = (settings.http_front, settings.http_require_name);
        // A handler that does not speak the revision has every request of it refused.
        let versions = TaskServer::new(operations.clone(), handler()).supported_protocol_versions();
        let speaks_it = versions.contains(&ProtocolVersion::V_2026_07_28);
        let door = Door::new(&config);
        let (limit, stop) = (config.max_request_body_bytes, config.cancellation_token.clone());
        let sessions = Sessions::new(settings.http_session_timeout, settings.http_max_sessions);
        let (shared, make) = (operations.clone(), handler.clone());
        let behind = StreamableHttpService::new(
            move || Ok(TaskServer::new(shared.clone(), make())),
            Arc::new(sessions),
            config,
        );
        Self {
            shared: Arc::new(Shared {
                behind,
                operations,
                handler,
                door,
                answers: answers && speaks_it,
                require_name,
                limit,
                stop,
            }),
        }
    }

    /// Answers one request.
    pub(super) fn handle(&self, request: Request) -> Handled {
        self.shared.serve(request)
    }
}

impl<H: ServerHandler> Service<Request> for Front<H> {
    type Response = Response;
    type Error = Infallible;
    type Future = Handled;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        self.handle(request)
    }
}

/// The methods that are answered here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Get,
    Update,
    Cancel,
    Call,
    Listen,
}

impl Method {
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

impl<H: ServerHandler> Shared<H> {
    fn serve(self: &Arc<Self>, request: Request) -> Handled {
        let shared = self.clone();
        let lacks_name = name::is_missing(request.headers());
        if lacks_name && self.require_name {
            name::warn();
            return Box::pin(async move { Ok(shared.behind(request).await) });
        }
        let method = self.method(&request);
        if method.is_none() && !lacks_name {
            return Box::pin(async move { Ok(shared.behind(request).await) });
        }
        // No `async fn` takes the parts by value: each would keep them twice, and what is moved and allocated for a poll is
        // a good part of what it costs.
        let (mut parts, body) = request.into_parts();
        Box::pin(async move {
            let body = match body::read(body, shared.limit).await {
                Ok(body) => body,
                Err(body) => return Ok(shared.behind(Request::from_parts(parts, body)).await),
            };
            if lacks_name {
                name::fill_in(&mut parts.headers, &body);
            }
            if let Some(method) = method
                && let Some(response) = shared.answer(method, &parts, &body).await
            {
                return Ok(response);
            }
            Ok(shared.behind(Request::from_parts(parts, Body::from(body))).await)
        })
    }

    /// What is to be answered here, as far as the headers tell.
    fn method(&self, request: &Request) -> Option<Method> {
        if !self.answers {
            return None;
        }
        Method::of(self.door.method(request.method(), request.headers())?)
    }

    /// The answer; `None` leaves the request to rmcp.
    async fn answer(&self, method: Method, parts: &Parts, body: &Bytes) -> Option<Response> {
        // Text in another encoding is no JSON, also where it would be passed over.
        let body = std::str::from_utf8(body).ok()?;
        // What is asked most has its future here. The others', and rmcp's, are boxed on their own: they are many times larger,
        // and every request would be given room for the largest.
        match method {
            Method::Get => self.get(parts, body).await,
            Method::Update => Box::pin(self.update(parts, body)).await,
            Method::Cancel => Box::pin(self.cancel(parts, body)).await,
            Method::Call => Box::pin(self.call(parts, body)).await,
            Method::Listen => Box::pin(self.listen(parts, body)).await,
        }
    }

    fn behind(&self, request: Request) -> impl Future<Output = Response> {
        let handled = Box::pin(self.behind.handle(request));
        async { handled.await.map(Body::new) }
    }
}
