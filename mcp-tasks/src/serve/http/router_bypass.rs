//! Past axum's router, which is a twelfth of what a poll costs outside of the kernel.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::Request;
use axum::http::Method;
use axum::response::Response;
use rmcp::ServerHandler;
use tower_service::Service;

use super::fast_path::{McpService, ResponseFuture};
use super::{PATH, router};

/// What is served where the application puts no layers in front: posts to MCP's path go straight to the service, and all
/// else through the router, which has the answers for other methods and paths. Cloning shares it.
pub(super) struct RouterBypass<H> {
    targets: Arc<Targets<H>>,
}

struct Targets<H> {
    service: McpService<H>,
    router: Router,
}

impl<H: ServerHandler> RouterBypass<H> {
    pub(super) fn new(service: McpService<H>) -> Self {
        let router = router(&service);
        Self {
            targets: Arc::new(Targets { service, router }),
        }
    }
}

impl<H> Clone for RouterBypass<H> {
    fn clone(&self) -> Self {
        Self {
            targets: self.targets.clone(),
        }
    }
}

impl<H> fmt::Debug for RouterBypass<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouterBypass").finish_non_exhaustive()
    }
}

impl<H: ServerHandler> Service<Request> for RouterBypass<H> {
    type Response = Response;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        if *request.method() == Method::POST && request.uri().path() == PATH {
            self.targets.service.handle(request)
        } else {
            Box::pin(self.targets.router.clone().call(request))
        }
    }
}
