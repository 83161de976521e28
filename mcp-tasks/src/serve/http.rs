//! Serving over Streamable HTTP.

use axum::serve::ListenerExt;
use axum::{Router, ServiceExt};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::{DRAIN_TIMEOUT, Error, FLUSH_TIMEOUT, Result, Server};
use crate::config::settings::{allowed, checked};
use crate::config::start::{Problems, StartError};

mod entry;
mod front;
mod sessions;

use entry::Entry;
use front::Front;

/// Where MCP is served; what clients and the conformance suite expect of a server that says nothing else.
const PATH: &str = "/mcp";

/// Browser pages that may call a local server: those that this machine serves itself, such as a development tool. A page
/// from anywhere else is refused, whatever name it reached the server under.
const LOCAL_ORIGINS: [&str; 6] = [
    "http://localhost:*",
    "https://localhost:*",
    "http://127.0.0.1:*",
    "https://127.0.0.1:*",
    "http://[::1]:*",
    "https://[::1]:*",
];

#[derive(Debug, Default)]
pub(super) struct HttpOptions {
    hosts: Option<Vec<String>>,
    origins: Option<Vec<String>>,
    layer: Option<Layer>,
}

impl HttpOptions {
    /// Reads what was given in code as the configuration is read. What is refused stays as it is, for rmcp to match nothing
    /// with: a list without it might be empty, which lets everybody in.
    fn check(&mut self) -> std::result::Result<(), StartError> {
        let mut problems = Problems::default();
        let mut read =
            |list: &mut Option<Vec<String>>, method, item: fn(&str) -> std::result::Result<String, String>| {
                let Some(given) = list else { return };
                match checked(&*given, item) {
                    Ok(good) => *given = good,
                    Err(error) => problems.add(format!("`Server::{method}`: {error}")),
                }
            };
        read(&mut self.hosts, "allowed_hosts", allowed::host);
        read(&mut self.origins, "allowed_origins", allowed::origin);
        problems.finish()
    }
}

/// What an application puts in front of the service.
struct Layer(Box<dyn FnOnce(Router) -> Router + Send>);

impl std::fmt::Debug for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Layer")
    }
}

impl<H: ServerHandler> Server<H> {
    /// The `Host` headers that are served, as `host` or `host:port`: the names under which clients reach this server. Only
    /// loopback names are, unless said here or in `mcp.tasks.http.allowed-hosts`; what is said replaces them. A name without
    /// a port is served at every port. [`serve`](Self::serve) fails for a text that no `Host` header can have.
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    pub fn allowed_hosts<N: Into<String>>(mut self, hosts: impl IntoIterator<Item = N>) -> Self {
        self.http.hosts = Some(hosts.into_iter().map(Into::into).collect());
        self
    }

    /// The `Origin` headers that are served, as `https://app.example.com`, `https://app.example.com:8443` or
    /// `http://localhost:*`: the browser pages that may call this server. Only pages of this machine may, unless said here or
    /// in `mcp.tasks.http.allowed-origins`; what is said replaces them. Requests without the header do not come from a page
    /// and are served. [`serve`](Self::serve) fails for a text that no `Origin` header can have.
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    pub fn allowed_origins<N: Into<String>>(mut self, origins: impl IntoIterator<Item = N>) -> Self {
        self.http.origins = Some(origins.into_iter().map(Into::into).collect());
        self
    }

    /// Puts layers in front of the service, such as one that authenticates, or adds routes beside it.
    ///
    /// ```standalone_crate
    /// use axum::routing::get;
    /// use mcp_tasks::{Server, TaskRuntime};
    ///
    /// let server = Server::new(TaskRuntime::builder().build()?)
    ///     .router(|router| router.route("/healthz", get(|| async { "ok" })));
    /// # let _ = server;
    /// # Ok::<(), mcp_tasks::StartError>(())
    /// ```
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    pub fn router(mut self, change: impl FnOnce(Router) -> Router + Send + 'static) -> Self {
        self.http.layer = Some(Layer(Box::new(change)));
        self
    }

    /// The service as an axum router with MCP at `/mcp`, to be merged into an application's own. Sessions and streams end
    /// when `stop` fires.
    ///
    /// A host or an origin given in code that no request can have is an ERROR in the log: requests are refused for it.
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    pub fn into_router(mut self, stop: CancellationToken) -> Router {
        if let Err(error) = self.http.check() {
            tracing::error!("{error}");
        }
        let layer = self.http.layer.take();
        let router = router(&self.into_front(stop));
        match layer {
            Some(Layer(change)) => change(router),
            None => router,
        }
    }

    fn into_front(mut self, stop: CancellationToken) -> Front<H> {
        let settings = self.runtime.engine.settings();
        let mut config = StreamableHttpServerConfig::default()
            // A poll is one small answer: an event stream around it costs a client an event parser and the connection
            // its reuse. rmcp still opens a stream when a call sends notifications.
            .with_json_response(true)
            .with_cancellation_token(stop)
            .with_allowed_origins(LOCAL_ORIGINS)
            .enforce_origin_validation();
        if let Some(hosts) = self.http.hosts.take().or_else(|| settings.http_allowed_hosts.clone()) {
            config = config.with_allowed_hosts(hosts);
        }
        if let Some(origins) = self
            .http
            .origins
            .take()
            .or_else(|| settings.http_allowed_origins.clone())
        {
            config = config.with_allowed_origins(origins);
        }
        Front::new(self.runtime, self.handler, config)
    }
}

fn router<H: ServerHandler>(front: &Front<H>) -> Router {
    Router::new().route_service(PATH, front.clone())
}

/// Serves until `stop` fires and what is under way has ended, or patience with it has. Returns when `stop` fired.
pub(super) async fn serve<H: ServerHandler>(
    mut server: Server<H>,
    stop: CancellationToken,
    ready: impl FnOnce(&str),
) -> Result<Instant> {
    server.http.check()?;
    let addr = server.runtime.engine.settings().http_addr.clone();
    let refused = |source| Error::Listen {
        addr: addr.clone(),
        source,
    };
    let listener = TcpListener::bind(&addr).await.map_err(refused)?;
    let local = listener.local_addr().map_err(refused)?;
    let settings = server.runtime.engine.settings();
    if !local.ip().is_loopback() && server.http.hosts.is_none() && settings.http_allowed_hosts.is_none() {
        let text = format!(
            "the address {local} is not a loopback one, but only loopback `Host` headers are served: name the hosts under \
             which clients reach this server in mcp.tasks.http.allowed-hosts, or they get 403"
        );
        tracing::warn!("{text}");
        server.notice.print(text);
    }
    // Small answers must not wait for the acknowledgement of what went before.
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY cannot be set");
        }
    });

    // Streams that never end by themselves are cut when patience is over; everything else may finish before.
    let streams = CancellationToken::new();
    let stopping = stop.clone().cancelled_owned();
    let serving = if server.http.layer.is_some() {
        let router = server.into_router(streams.clone());
        tokio::spawn(
            axum::serve(listener, router)
                .with_graceful_shutdown(stopping)
                .into_future(),
        )
    } else {
        let entry = Entry::new(server.into_front(streams.clone()));
        tokio::spawn(
            axum::serve(listener, entry.into_make_service())
                .with_graceful_shutdown(stopping)
                .into_future(),
        )
    };
    ready(&format!("http://{local}{PATH}"));

    stop.cancelled().await;
    let stopped = Instant::now();
    let mut serving = serving;
    let mut ended = timeout(DRAIN_TIMEOUT, &mut serving).await;
    if ended.is_err() {
        streams.cancel();
        ended = timeout(FLUSH_TIMEOUT, &mut serving).await;
    }
    let Ok(ended) = ended else {
        tracing::warn!("stopping with connections that do not end");
        serving.abort();
        return Ok(stopped);
    };
    let failed = |source| Error::Transport {
        transport: "http",
        source,
    };
    ended
        .map_err(|error| failed(error.into()))?
        .map_err(|error| failed(error.into()))?;
    Ok(stopped)
}
