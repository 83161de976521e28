//! A server that is ready to run.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use mcp_tasks_core::StoreError;
use rmcp::ServerHandler;
use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config::settings::Transport;
use crate::config::start::StartError;
use crate::host::handler::{NoHandler, TaskServer};
use crate::host::runtime::TaskRuntime;

#[cfg(feature = "http")]
mod http;
#[cfg(any(feature = "http", feature = "stdio"))]
#[cfg_attr(not(feature = "http"), allow(dead_code, reason = "the fast path is over HTTP alone"))]
mod message;
mod signal;
mod start_notice;
#[cfg(feature = "stdio")]
mod stdio;
#[cfg(any(feature = "http", feature = "stdio"))]
mod subscription;

use start_notice::StartNotice;

/// How long a stopping server waits for calls and executions that are under way: long enough for ordinary calls to end,
/// short enough that an operator does not reach for `kill -9`.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the last bytes may take to reach clients once nothing more will be said. A client that does not read, or a
/// route of the application's that never answers, must not keep the process.
#[cfg(any(feature = "http", feature = "stdio"))]
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Why a server did not start, or stopped.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A tool or the configuration has a mistake.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The address cannot be listened on.
    #[error("cannot listen on {addr}; set another address with mcp.tasks.http.addr or MCP_TASKS_HTTP_ADDR")]
    #[non_exhaustive]
    Listen {
        /// The address.
        addr: String,
        /// Why not.
        source: io::Error,
    },
    /// The task store does not answer, or refuses.
    #[error("the task store cannot be used; check what mcp.tasks.store.url names, or the store that was given in code")]
    #[non_exhaustive]
    Store {
        /// Why not.
        source: StoreError,
    },
    /// The transport broke.
    #[error("the {transport} transport failed")]
    #[non_exhaustive]
    Transport {
        /// Which.
        transport: &'static str,
        /// How.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The transport that the configuration asks for is not in this build.
    #[error("this build cannot serve over {transport}; switch on the crate's feature `{transport}`")]
    #[non_exhaustive]
    NotBuilt {
        /// Which.
        transport: &'static str,
    },
}

/// `Display` with the causes: it is what a `main` that returns this error prints.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&mcp_tasks_core::error_chain(self))
    }
}

/// What [`Server::serve`] and the like return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

type OnReady = Box<dyn FnOnce(&str) + Send>;
type Factory<H> = Arc<dyn Fn() -> H + Send + Sync>;

/// A server with the tools of a [`TaskRuntime`], over Streamable HTTP or stdio.
///
/// It serves clients of 2026-07-28, for which task tools run as tasks, and of 2025-11-25, for which they run inside the
/// call. HTTP serves MCP at `/mcp`, prefers JSON responses, and checks `Host` and `Origin` against rebinding attacks.
///
/// ```no_run
/// use mcp_tasks::prelude::*;
///
/// /// Count to ten, slowly.
/// #[mcp_task]
/// async fn count(ctx: ToolContext) -> String {
///     let mut counter = ctx.count_to(10);
///     for n in 1..=10 {
///         tokio::time::sleep(std::time::Duration::from_secs(1)).await;
///         counter.advance(1, format!("at {n}"));
///     }
///     "counted".to_owned()
/// }
///
/// #[tokio::main]
/// async fn main() -> mcp_tasks::Result<()> {
///     Server::from_env()?.serve().await
/// }
/// ```
#[must_use = "a server does nothing until it serves"]
pub struct Server<H = NoHandler> {
    runtime: TaskRuntime,
    handler: Factory<H>,
    #[cfg(feature = "http")]
    http: http::HttpOptions,
    on_ready: Option<OnReady>,
    notice: StartNotice,
}

impl<H> fmt::Debug for Server<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("runtime", &self.runtime)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// A server whose tools are collected at link time, configured by environment and file.
    ///
    /// # Errors
    /// Every mistake in tools and configuration, in one error.
    pub fn from_env() -> Result<Self, StartError> {
        TaskRuntime::builder().build().map(Self::new)
    }

    /// A server with the tools of `runtime` and nothing else.
    pub fn new(runtime: TaskRuntime) -> Self {
        let info = ServerConfig::new(ServerCapabilities::default())
            .with_server_info(Implementation::new("mcp-tasks", env!("CARGO_PKG_VERSION")));
        Self::with_info(runtime, info)
    }

    fn with_info(runtime: TaskRuntime, info: ServerConfig) -> Self {
        Self::with_factory(
            runtime,
            Arc::new(move || NoHandler {
                info: Some(info.clone()),
            }),
        )
    }

    /// The name and version that clients see.
    pub fn name(self, name: impl Into<String>, version: impl Into<String>) -> Self {
        let mut info = (self.handler)().info.unwrap_or_default();
        info.server_info = Implementation::new(name, version);
        Self {
            handler: Arc::new(move || NoHandler {
                info: Some(info.clone()),
            }),
            ..self
        }
    }

    /// What clients should know about using this server.
    pub fn instructions(self, instructions: impl Into<String>) -> Self {
        let mut info = (self.handler)().info.unwrap_or_default();
        info.instructions = Some(instructions.into());
        Self {
            handler: Arc::new(move || NoHandler {
                info: Some(info.clone()),
            }),
            ..self
        }
    }
}

impl<H: ServerHandler> Server<H> {
    fn with_factory(runtime: TaskRuntime, handler: Factory<H>) -> Self {
        Self {
            runtime,
            handler,
            #[cfg(feature = "http")]
            http: http::HttpOptions::default(),
            on_ready: None,
            notice: StartNotice::default(),
        }
    }

    /// A server with the tools of `runtime` beside everything that an rmcp handler offers. `handler` makes a handler
    /// for each session or request.
    ///
    /// # Errors
    /// When a tool of the handler, as its `get_tool` shows, has the name of a tool of `runtime`.
    pub fn wrapping(runtime: TaskRuntime, handler: impl Fn() -> H + Send + Sync + 'static) -> Result<Self, StartError> {
        runtime.wrap(handler())?;
        Ok(Self::with_factory(runtime, Arc::new(handler)))
    }

    /// Calls `ready` with the address once the server takes requests: the URL for HTTP, `stdio` otherwise.
    pub fn on_ready(mut self, ready: impl FnOnce(&str) + Send + 'static) -> Self {
        self.on_ready = Some(Box::new(ready));
        self
    }

    /// The runtime.
    pub const fn runtime(&self) -> &TaskRuntime {
        &self.runtime
    }

    /// Serves over the transport in `mcp.tasks.transport`, until SIGINT or SIGTERM, or the end of stdin. Then it takes
    /// no more requests, gives calls and executions under way five seconds to end, leaves the rest to other nodes (see
    /// [`TaskRuntime::shutdown`]), and returns. A second signal ends the process at once, also one that a blocking
    /// thread keeps: tokio's runtime waits for those, so blocking work should look at its
    /// [`cancellation`](crate::ToolContext::cancellation).
    ///
    /// Before it takes requests it asks the task store once, so that a server without its store does not start.
    ///
    /// Warnings and the address go to the log, through `tracing`. If no `tracing` subscriber is set when this is
    /// called, they are written to stderr, and nothing later is. Over stdio, stdout belongs to the protocol: nothing
    /// else may write to it.
    ///
    /// # Errors
    /// When a host or an origin given in code cannot be one, the task store cannot be used, the address cannot be
    /// listened on, or the transport breaks.
    pub async fn serve(mut self) -> Result<()> {
        self.notice = StartNotice::unless_logged();
        let stop = CancellationToken::new();
        signal::cancel_on_signal(stop.clone());
        self.serve_until(stop).await
    }

    /// As [`serve`](Self::serve), but until `stop` fires: signals are not caught, and nothing is written to stderr.
    ///
    /// # Errors
    /// As [`serve`](Self::serve).
    pub async fn serve_until(mut self, stop: CancellationToken) -> Result<()> {
        let runtime = self.runtime.clone();
        for warning in runtime.warnings.texts() {
            self.notice.print(warning);
        }
        // The log has it from when the handler was wrapped.
        if let Some(warning) = TaskServer::new(runtime.operations.clone(), (self.handler)()).uncallable_tools() {
            self.notice.print(warning);
        }
        tokio::select! {
            checked = runtime.check_store() => checked.map_err(|source| Error::Store { source })?,
            () = stop.cancelled() => return Ok(()),
        }
        let ready = self.on_ready.take();
        let engine = runtime.engine().clone();
        let (notice, transport) = (self.notice, engine.settings().transport);
        let ready = move |address: &str| {
            tracing::info!(address, "serving");
            // A server on stdio has no address.
            if transport == Transport::Http {
                notice.print(format_args!("serving at {address}"));
            }
            engine.start_background();
            if let Some(ready) = ready {
                ready(address);
            }
        };
        // After the stop no execution begins: a parked task stays parked, for another process.
        let (closing, stopping) = (runtime.engine().clone(), stop.clone());
        tokio::spawn(async move {
            stopping.cancelled().await;
            closing.close();
        });
        let stopped = self.serve_over(stop, ready).await?;
        // Calls and executions have the same five seconds, not five each.
        let remaining = DRAIN_TIMEOUT.saturating_sub(stopped.elapsed());
        let left = runtime.engine().drain(remaining).await;
        if left > 0 {
            tracing::warn!(left, "stopping with executions under way");
        }
        Ok(())
    }

    /// Serves over the configured transport until `stop` fires or the client is gone, and until the requests under way
    /// are answered or their time is over. Returns when the stop began.
    #[cfg_attr(
        not(any(feature = "http", feature = "stdio")),
        expect(unused_variables, reason = "there is nothing to serve over")
    )]
    async fn serve_over(self, stop: CancellationToken, ready: impl FnOnce(&str)) -> Result<Instant> {
        match self.runtime.engine().settings().transport {
            #[cfg(feature = "http")]
            Transport::Http => http::serve(self, stop, ready).await,
            #[cfg(feature = "stdio")]
            Transport::Stdio => stdio::serve(self, stop, ready).await,
            #[cfg(not(feature = "http"))]
            Transport::Http => Err(Error::NotBuilt { transport: "http" }),
            #[cfg(not(feature = "stdio"))]
            Transport::Stdio => Err(Error::NotBuilt { transport: "stdio" }),
        }
    }
}
