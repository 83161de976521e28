//! The tools, the store and the configuration of a server, put together.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp_tasks_core::StoreError;
use rmcp::ServerHandler;

use crate::config::start::{Problems, StartError, Warnings};
use crate::host::handler::{NoHandler, TaskServer};
use crate::host::operations::Operations;
use crate::task::TaskEngine;

mod builder;

pub use builder::TaskRuntimeBuilder;

/// Whether tools that no client can call were warned of. Once is enough: a handler is wrapped for each session.
static IS_WARNED: AtomicBool = AtomicBool::new(false);

/// Tools, store and configuration of a server, checked and ready to run; cloning shares it.
///
/// A program has one of these. [`Server`](crate::Server) serves it over HTTP or stdio. A program with an rmcp server of
/// its own wraps that server's handler with it instead, see [`wrap`](Self::wrap).
///
/// ```standalone_crate
/// use mcp_tasks::TaskRuntime;
///
/// let runtime = TaskRuntime::builder().build()?;
/// let handler = runtime.handler();
/// # let _ = handler;
/// # Ok::<(), mcp_tasks::StartError>(())
/// ```
#[derive(Clone)]
pub struct TaskRuntime {
    pub(crate) operations: Operations,
    /// What the start warned of.
    pub(crate) warnings: Arc<Warnings>,
}

impl fmt::Debug for TaskRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskRuntime")
            .field("operations", &self.operations)
            .finish_non_exhaustive()
    }
}

impl TaskRuntime {
    /// A builder of a runtime: with the tools collected at link time, configuration from the environment and a file, and
    /// the memory store, unless it is told otherwise.
    pub fn builder() -> TaskRuntimeBuilder {
        TaskRuntimeBuilder::default()
    }

    /// Adds this runtime's tools and the methods of the Tasks extension to an rmcp handler.
    ///
    /// rmcp asks for a handler per session or request; all that are wrapped here share the one runtime. A handler that does not
    /// speak the revision with tasks is warned of, through `tracing`, if there are tools that run only as tasks.
    ///
    /// # Errors
    /// When a tool of the handler, as its `get_tool` shows, has the name of a tool of this runtime.
    pub fn wrap<H: ServerHandler>(&self, handler: H) -> Result<TaskServer<H>, StartError> {
        let mut problems = Problems::default();
        for tool in self.engine().registry().iter() {
            if handler.get_tool(&tool.name).is_some() {
                problems.add(format!(
                    "two tools are called `{}`: one of the wrapped handler's and the one at {}; rename one of them",
                    tool.name, tool.descriptor.source,
                ));
            }
        }
        problems.finish()?;
        let server = TaskServer::new(self.operations.clone(), handler);
        if let Some(warning) = server.uncallable_tools()
            && !IS_WARNED.swap(true, Ordering::Relaxed)
        {
            tracing::warn!("{warning}");
        }
        Ok(server)
    }

    /// An rmcp handler with this runtime's tools and nothing else.
    #[must_use]
    pub fn handler(&self) -> TaskServer<NoHandler> {
        TaskServer::new(self.operations.clone(), NoHandler::default())
    }

    /// Reads from the task store once, and again for up to ten seconds while it cannot be reached, as a database that is
    /// started at the same time may need a moment. [`Server::serve`](crate::Server::serve) does this by itself; it is for a
    /// program that serves a [`wrap`](Self::wrap)ped handler in its own way, before it takes requests.
    ///
    /// Cancel safe: it changes nothing.
    ///
    /// # Errors
    /// Those of the store: it does not answer, or refuses, because of a wrong password for example.
    pub async fn check_store(&self) -> Result<(), StoreError> {
        self.engine().check_store().await
    }

    pub(crate) const fn engine(&self) -> &TaskEngine {
        self.operations.engine()
    }

    /// Stops taking on tasks and waits, at most for `patience`, for the executions that run. Those that are left then are
    /// stopped, and their number is returned. Their leases are released, so that other nodes take them over at once; a store
    /// that does not answer delays this by no more than a second. [`Server::serve`](crate::Server::serve) does this by
    /// itself; it is for a program that serves a [`wrap`](Self::wrap)ped handler in its own way.
    ///
    /// A runtime cannot be started again. Dropping the future leaves it closed to new tasks, with its executions running;
    /// calling this again waits for them.
    pub async fn shutdown(&self, patience: Duration) -> usize {
        self.engine().drain(patience).await
    }

    /// The names of the tools, in the order in which they are listed.
    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.engine().registry().iter().map(|tool| &*tool.name)
    }
}
