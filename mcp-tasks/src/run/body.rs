//! The body of a tool, and its panics.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll, Waker};

use futures::future::BoxFuture;
use rmcp::model::CallToolResult;

use super::Run;
use crate::tool::error::ToolError;

/// A tool's body, called.
pub(crate) type Body = BoxFuture<'static, Result<CallToolResult, ToolError>>;

/// A body whose panics, in a poll or when it is dropped, stop here.
pub(super) struct GuardedBody(Option<Body>);

impl GuardedBody {
    pub(super) const fn new(body: Body) -> Self {
        Self(Some(body))
    }

    /// Polls the body as that of `run`.
    ///
    /// # Errors
    /// The words of a panic.
    pub(super) fn poll(&mut self, run: &Run, waker: &Waker) -> Result<Poll<Result<CallToolResult, ToolError>>, String> {
        let Some(body) = &mut self.0 else {
            return Ok(Poll::Pending);
        };
        let mut context = Context::from_waker(waker);
        let polled = catch_unwind(AssertUnwindSafe(|| run.polling(|| body.as_mut().poll(&mut context))));
        match polled {
            Ok(Poll::Pending) => Ok(Poll::Pending),
            Ok(Poll::Ready(outcome)) => {
                self.drop_body();
                Ok(Poll::Ready(outcome))
            }
            Err(payload) => Err(panic_text(payload)),
        }
    }

    fn drop_body(&mut self) {
        let body = self.0.take();
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(body))) {
            tracing::error!(
                panic = panic_text(payload),
                "a tool's body panicked while it was dropped"
            );
        }
    }
}

impl Drop for GuardedBody {
    fn drop(&mut self) {
        self.drop_body();
    }
}

/// The words of a panic. The payload itself is dropped with care: its own `Drop` may panic.
pub(crate) fn panic_text(payload: Box<dyn Any + Send>) -> String {
    let text = payload
        .downcast_ref::<&'static str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic whose payload is no text".to_owned());
    let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    text
}
