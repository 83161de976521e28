//! The way past axum's router, which is a twelfth of what a poll costs outside of the kernel.

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

use super::front::{Front, Handled};
use super::{PATH, router};

/// What is served where the application puts nothing in front: posts to MCP's path go straight to the front, and all else
/// through the router, which has the answers for other methods and paths. Cloning shares it.
pub(super) struct Entry<H> {
    shared: Arc<Shared<H>>,
}

struct Shared<H> {
    front: Front<H>,
    router: Router,
}

impl<H: ServerHandler> Entry<H> {
    pub(super) fn new(front: Front<H>) -> Self {
        let router = router(&front);
        Self {
            shared: Arc::new(Shared { front, router }),
        }
    }
}

impl<H> Clone for Entry<H> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<H> fmt::Debug for Entry<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").finish_non_exhaustive()
    }
}

impl<H: ServerHandler> Service<Request> for Entry<H> {
    type Response = Response;
    type Error = Infallible;
    type Future = Handled;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        if *request.method() == Method::POST && request.uri().path() == PATH {
            self.shared.front.handle(request)
        } else {
            Box::pin(self.shared.router.clone().call(request))
        }
    }
}
