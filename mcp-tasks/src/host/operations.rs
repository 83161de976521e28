//! What get, update, cancel, call and list mean, decided once for every way in.
//!
//! The ways in (rmcp's handler, and the HTTP fast path in front of rmcp) decode a request into one of the types here, and
//! encode what comes back.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;

use futures::FutureExt;
#[cfg(feature = "http")]
use mcp_tasks_core::Principal;
use mcp_tasks_core::{TaskId, TaskRecord};
use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use tracing::Instrument;

use crate::call::CallRunner;
use crate::host::capabilities::CapabilitiesCache;
use crate::run::body::panic_text;
use crate::task::{TaskEngine, store_failed, unknown_task};
use crate::tool::caller::{Caller, Guard};
use crate::tool::registry::RegisteredTool;

mod admission;
mod call;
mod cancel;
mod get;
mod list;
mod update;

pub(crate) use admission::{Admission, admit};
#[cfg(feature = "http")]
pub(crate) use call::becomes_task_at_once;
pub(crate) use call::{Answer, CallTool, unknown_tool};
pub(crate) use cancel::CancelTask;
pub(crate) use get::GetTask;
pub(crate) use list::ListTools;
pub(crate) use update::UpdateTask;

/// Reads the principal of an HTTP request, where an authentication layer in front has put it.
#[cfg(feature = "http")]
pub(crate) type PrincipalHook = Arc<dyn Fn(&http::request::Parts) -> Option<Principal> + Send + Sync>;

/// The operations on the tools and tasks of one runtime; cloning shares it.
#[derive(Clone)]
pub(crate) struct Operations {
    engine: TaskEngine,
    calls: Arc<CallRunner>,
    capabilities: Arc<CapabilitiesCache>,
    #[cfg(feature = "http")]
    principal: Option<PrincipalHook>,
}

impl fmt::Debug for Operations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operations")
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}

/// Why an operation on a task did not take place.
#[derive(Debug)]
pub(crate) enum TaskRefusal {
    /// The caller has no task of this id here. A wrapped handler may have one.
    Unknown,
    /// Anything else.
    Error(ErrorData),
}

impl From<ErrorData> for TaskRefusal {
    fn from(error: ErrorData) -> Self {
        Self::Error(error)
    }
}

impl From<TaskRefusal> for ErrorData {
    fn from(refusal: TaskRefusal) -> Self {
        match refusal {
            TaskRefusal::Unknown => unknown_task(),
            TaskRefusal::Error(error) => error,
        }
    }
}

impl Operations {
    pub(crate) fn new(
        engine: TaskEngine,
        calls: CallRunner,
        #[cfg(feature = "http")] principal: Option<PrincipalHook>,
    ) -> Self {
        Self {
            engine,
            calls: Arc::new(calls),
            capabilities: Arc::default(),
            #[cfg(feature = "http")]
            principal,
        }
    }

    pub(crate) const fn engine(&self) -> &TaskEngine {
        &self.engine
    }

    /// What clients declared before.
    pub(crate) fn capabilities(&self) -> &CapabilitiesCache {
        &self.capabilities
    }

    /// Our tool of this name.
    pub(crate) fn tool(&self, name: &str) -> Option<&Arc<RegisteredTool>> {
        self.engine.registry().get(name)
    }

    /// The caller of an HTTP request.
    ///
    /// # Errors
    /// `-32603` if the application's hook panics.
    #[cfg(feature = "http")]
    pub(crate) fn caller(&self, request: &http::request::Parts) -> Result<Caller, ErrorData> {
        let Some(read) = &self.principal else {
            return Ok(Caller::anonymous());
        };
        std::panic::catch_unwind(AssertUnwindSafe(|| read(request)))
            .map(|principal| principal.map_or_else(Caller::anonymous, Caller::from_principal))
            .map_err(panicked)
    }
}

/// The task, if it is there and the caller's: the one read of every operation on a task.
async fn find(engine: &TaskEngine, id: &TaskId, caller: &Caller) -> Result<Arc<TaskRecord>, TaskRefusal> {
    match engine.find(id, caller.principal()).await {
        Ok(Some(record)) => Ok(record),
        Ok(None) => Err(TaskRefusal::Unknown),
        Err(error) => Err(store_failed(&error).into()),
    }
}

/// `-32010`: the protocol has no code for a caller who is known and may not.
const FORBIDDEN: ErrorCode = ErrorCode(-32010);

/// Asks a tool's guard.
///
/// # Errors
/// `-32010` with the guard's reason.
async fn ask_guard(guard: Option<Guard>, caller: &Caller) -> Result<(), ErrorData> {
    let Some(guard) = guard else { return Ok(()) };
    guard(caller)
        .await
        .map_err(|denied| ErrorData::new(FORBIDDEN, format!("Forbidden: {denied}"), None))
}

/// `-32603` for handling that panicked; the words go into the log.
fn panicked(payload: Box<dyn std::any::Any + Send>) -> ErrorData {
    tracing::error!(panic = panic_text(payload), "the handling of a request panicked");
    ErrorData::internal_error("The server failed unexpectedly", None)
}

/// The outcome of a request's handling, also when it panics: in a guard, in the decoding of an argument, in a wrapped
/// handler. rmcp would leave such a request without an answer.
pub(crate) async fn answered<T, E: From<ErrorData>>(handling: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    AssertUnwindSafe(handling)
        .catch_unwind()
        .await
        .unwrap_or_else(|payload| Err(panicked(payload).into()))
}

/// Drives `work` to its end, also when the connection of its request goes away: half of it, such as a task that is stored
/// and not started, must not be left. What is done at once, as with a store in memory, needs no task of the runtime for
/// that.
async fn run_to_end<T, E>(work: impl Future<Output = Result<T, E>> + Send + 'static) -> Result<T, E>
where
    T: Send + 'static,
    E: From<ErrorData> + Send + 'static,
{
    let mut work = Box::pin(answered(work));
    match futures::poll!(&mut work) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => tokio::spawn(work.in_current_span()).await.unwrap_or_else(|error| {
            tracing::error!(%error, "the handling of a request did not end");
            Err(ErrorData::internal_error("The server failed unexpectedly", None).into())
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[tokio::test]
    async fn what_is_under_way_ends_also_when_its_request_is_dropped() {
        let ended = Arc::new(AtomicBool::new(false));
        let (go, goes) = tokio::sync::oneshot::channel::<()>();
        let done = ended.clone();
        let mut request = Box::pin(run_to_end::<_, ErrorData>(async move {
            let _ = goes.await;
            done.store(true, Ordering::Relaxed);
            Ok(())
        }));
        assert!(futures::poll!(&mut request).is_pending());
        drop(request);
        go.send(()).unwrap();
        while !ended.load(Ordering::Relaxed) {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn handling_that_panics_is_answered() {
        let panics = run_to_end::<(), ErrorData>(async { panic!("on purpose") });
        assert_eq!(panics.await.unwrap_err().code, ErrorCode::INTERNAL_ERROR);
    }
}
