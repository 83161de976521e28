//! The builder of a client.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use mcp_tasks_core::Timestamp;
use reqwest::Url;
use reqwest::redirect::Policy;
use rmcp::RoleClient;
use rmcp::model::{ClientConfig, Implementation, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, Peer, serve_client_with_lifecycle};
use rmcp::transport::IntoTransport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::Command;

use super::clock::Clock;
use super::connection_handler::{ConnectionHandler, ProgressRoutes};
use super::request::declares_per_request;
use super::request_error::{causes, connect_error};
use super::wire::{self, LegacyHandshake, LineTransport};
use super::{
    ClientError, Connection, InputHandler, InputSupport, Observer, Pacing, TaskClient, TaskEvent, TransportError,
};

/// How long a host may take to accept a connection: longer than the retransmissions that a lost packet costs.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How many redirects one request follows. One is what a slash too many costs; a server that has more goes in circles.
const MAX_REDIRECTS: usize = 5;

/// Makes a [`TaskClient`].
///
/// ```no_run
/// use mcp_tasks::client::TaskClient;
///
/// # async fn f() -> Result<(), Box<dyn std::error::Error>> {
/// let client = TaskClient::builder()
///     .name("reporter", "1.0.0")
///     .bearer(std::env::var("MCP_TOKEN")?)
///     .connect_http("https://tools.example.com/mcp")
///     .await?;
/// # let _ = client;
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder does nothing until it connects"]
pub struct TaskClientBuilder {
    name: Implementation,
    input_support: InputSupport,
    observer: Observer,
    pacing: Pacing,
    clock: Clock,
    token: Option<String>,
    headers: HashMap<HeaderName, HeaderValue>,
    lifecycle: ClientLifecycleMode,
    connect_timeout: Duration,
}

impl std::fmt::Debug for TaskClientBuilder {
    // Neither the token nor the headers, which are secrets as often as not.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskClientBuilder")
            .field("input_support", &self.input_support)
            .field("pacing", &self.pacing)
            .finish_non_exhaustive()
    }
}

impl Default for TaskClientBuilder {
    fn default() -> Self {
        Self {
            name: Implementation::new("mcp-tasks", env!("CARGO_PKG_VERSION")),
            input_support: InputSupport::none(),
            observer: Observer::default(),
            pacing: Pacing::default(),
            clock: Clock::default(),
            token: None,
            headers: HashMap::new(),
            lifecycle: ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: Some(ProtocolVersion::V_2025_11_25),
            },
            // Servers that are fetched before they are started take their time.
            connect_timeout: Duration::from_secs(60),
        }
    }
}

impl TaskClientBuilder {
    /// The program's name and version, which servers log.
    pub fn name(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.name = Implementation::new(name, version);
        self
    }

    /// The handler that answers what servers ask. The client declares what the handler [answers](InputHandler::kinds), and nothing
    /// without a handler.
    pub fn input(mut self, handler: impl InputHandler) -> Self {
        self.input_support = InputSupport::new(handler);
        self
    }

    /// The function that is told what happens; see [`TaskClient::observed_by`].
    pub fn observe(mut self, observe: impl Fn(TaskEvent<'_>) + Send + Sync + 'static) -> Self {
        self.observer = Observer::new(observe);
        self
    }

    /// How often servers are asked, and how long they are waited for.
    pub fn pacing(mut self, pacing: Pacing) -> Self {
        self.pacing = pacing;
        self
    }

    /// The clock that tells whether the time of a task is over: `now` gives the present instant. The system's clock unless
    /// set.
    pub fn clock(mut self, now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Clock::new(now);
        self
    }

    /// The token that HTTP requests carry.
    pub fn bearer(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// One more header for HTTP requests. The protocol's own cannot be set.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Which revisions are tried. Unless set: 2026-07-28, and 2025-11-25 with a server that does not know it.
    pub fn lifecycle(mut self, lifecycle: ClientLifecycleMode) -> Self {
        self.lifecycle = lifecycle;
        self
    }

    /// How long a server may take to start and to answer for the first time. One minute unless set.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Connects over Streamable HTTP. `https://` is TLS by rustls, with the certificates the system trusts and the provider of
    /// cryptography that the program has installed, or else reqwest's own.
    ///
    /// A redirect is followed within the server, or from `http` to `https`, if it keeps the request as it is (307 and 308).
    /// Arguments, answers, tokens and headers go nowhere else.
    ///
    /// # Errors
    /// [`Transport`](ClientError::Transport) if the server cannot be reached or wants another token, and
    /// [`Protocol`](ClientError::Protocol) if it does not speak MCP.
    pub async fn connect_http(self, url: &str) -> Result<TaskClient, ClientError> {
        let client = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(redirects())
            .user_agent(concat!("mcp-tasks/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| unreachable(format!("no HTTP client can be made: {}", causes(&error))))?;
        let transport = wire::http_transport(client, url, self.token.as_deref(), self.headers.clone());
        let started = self.start(transport, Some(without_secrets(url)), true).await;
        started.map_err(|error| suggest_path(error, url))
    }

    /// Starts a server as a child process and connects to its standard streams. It is ended with the client.
    ///
    /// A server made with this crate speaks MCP there if `MCP_TASKS_TRANSPORT=stdio` is in the command's environment.
    ///
    /// # Errors
    /// [`Transport`](ClientError::Transport) if the program cannot be started, ends, or writes no answer to its standard
    /// output [in time](Self::connect_timeout), and [`Protocol`](ClientError::Protocol) if it does not speak MCP.
    pub async fn connect_command(self, command: Command) -> Result<TaskClient, ClientError> {
        let program = command.as_std().get_program().to_string_lossy().into_owned();
        let lines = LineTransport::spawn(command)
            .map_err(|error| unreachable(format!("{program} cannot be started: {error}")))?;
        let started = self.start(lines, None, true).await;
        started.map_err(|error| mark_silent_child(error, &program))
    }

    /// Connects over a pair of streams, one message a line, as on standard streams.
    ///
    /// # Errors
    /// [`Transport`](ClientError::Transport) if the streams end, and [`Protocol`](ClientError::Protocol) if the other end
    /// does not speak MCP.
    pub async fn connect_io<R, W>(self, reader: R, writer: W) -> Result<TaskClient, ClientError>
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        self.start(LineTransport::new(reader, writer), None, true).await
    }

    /// Connects over a transport of rmcp's.
    ///
    /// What rmcp does not decode is lost on the way, and changes are found by asking alone: rmcp has no place for the task
    /// ids of a subscription. The other ways to connect have neither limit.
    ///
    /// # Errors
    /// As [`connect_io`](Self::connect_io).
    pub async fn connect_transport<T, E, A>(self, transport: T) -> Result<TaskClient, ClientError>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        self.start(transport, None, false).await
    }

    /// Uses a connection of the application's, which stays the application's: it keeps the
    /// [`RunningService`](rmcp::service::RunningService), and its handler answers servers of older revisions.
    ///
    /// The limits are those of [`connect_transport`](Self::connect_transport).
    #[must_use]
    pub fn over(self, peer: Peer<RoleClient>) -> TaskClient {
        self.finish(peer, Arc::default(), None, None, false)
    }

    async fn start<T, E, A>(
        self,
        transport: T,
        endpoint: Option<String>,
        is_verbatim: bool,
    ) -> Result<TaskClient, ClientError>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let capabilities = serde_json::from_value(self.input_support.capabilities(true))
            .map_err(|error| ClientError::protocol(error.to_string()))?;
        let progress = Arc::new(ProgressRoutes::default());
        let config = ClientConfig::new(capabilities, self.name.clone());
        let local = ConnectionHandler::new(self.input_support.clone(), config, progress.clone());
        let transport = LegacyHandshake(transport.into_transport());
        let connecting = serve_client_with_lifecycle(local, transport, self.lifecycle.clone());
        let service = tokio::time::timeout(self.connect_timeout, connecting)
            .await
            .map_err(|_| unreachable(format!("the server did not answer within {:?}", self.connect_timeout)))?
            .map_err(connect_error)?;
        let peer = service.peer().clone();
        Ok(self.finish(peer, progress, Some(service), endpoint, is_verbatim))
    }

    fn finish(
        self,
        peer: Peer<RoleClient>,
        progress: Arc<ProgressRoutes>,
        service: Option<super::Service>,
        endpoint: Option<String>,
        is_verbatim: bool,
    ) -> TaskClient {
        let has_tasks = declares_per_request(&peer);
        TaskClient {
            connection: Arc::new(Connection {
                peer,
                progress,
                service: Mutex::new(service),
                capabilities: self.input_support.capabilities(has_tasks),
                input_support: self.input_support,
                pacing: self.pacing,
                clock: self.clock,
                endpoint,
                is_verbatim,
                subscriptions_unsupported: AtomicBool::new(false),
            }),
            observer: self.observer,
        }
    }
}

fn unreachable(message: String) -> ClientError {
    let source = TransportError {
        message,
        status: None,
        retry_after: None,
        is_temporary: false,
        is_silent_child: false,
    };
    ClientError::Transport { source, task: None }
}

/// Nothing is at the URL: where the server may be, if the URL has no path.
fn suggest_path(mut error: ClientError, url: &str) -> ClientError {
    let Ok(place) = Url::parse(&without_secrets(url)) else {
        return error;
    };
    let words = match &mut error {
        ClientError::Transport { source, .. } if source.status == Some(404) => &mut source.message,
        ClientError::Protocol { message, .. } if message.contains("HTTP 404") => message,
        _ => return error,
    };
    if place.path() == "/" {
        words.push_str(&format!("; the URL has no path, and most servers are at {place}mcp"));
    }
    error
}

/// A child was started, and there is no connection: it did not answer, or ended before it did.
fn mark_silent_child(mut error: ClientError, program: &str) -> ClientError {
    if let ClientError::Transport { source, .. } = &mut error {
        let words = format!(": no MCP message came from the standard output of {program}");
        source.message.push_str(&words);
        source.is_silent_child = true;
    }
    error
}

fn redirects() -> Policy {
    Policy::custom(|attempt| {
        // The others would make a GET of it, which no server of the protocol takes for the same.
        let keeps_the_request = matches!(attempt.status().as_u16(), 307 | 308);
        let asked = attempt.previous();
        let stays = asked.last().is_some_and(|from| is_same_server(from, attempt.url()));
        match keeps_the_request && stays && asked.len() <= MAX_REDIRECTS {
            true => attempt.follow(),
            false => attempt.stop(),
        }
    })
}

/// Whether what is meant for the one may be sent to the other.
fn is_same_server(from: &Url, to: &Url) -> bool {
    let is_upgraded = (from.scheme(), to.scheme()) == ("http", "https");
    let has_default_ports = from.port().is_none() && to.port().is_none();
    from.origin() == to.origin() || (is_upgraded && has_default_ports && from.host() == to.host())
}

/// The URL as it may be stored: a password or a token in it may not. A user goes as well, as many servers take a token there.
fn without_secrets(url: &str) -> String {
    match Url::parse(url) {
        Ok(mut url) => {
            let _ = url.set_username("");
            let _ = url.set_password(None);
            url.set_query(None);
            url.set_fragment(None);
            url.into()
        }
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_url_has_no_secret() {
        for url in [
            "https://user:pass@example.com/mcp?token=t#f",
            "https://token@example.com/mcp",
        ] {
            assert_eq!(without_secrets(url), "https://example.com/mcp");
        }
        let builder = TaskClient::builder().bearer("tell-nobody");
        assert!(!format!("{builder:?}").contains("tell-nobody"));
    }

    #[test]
    fn redirects_stay_in_one_place() {
        let same = |from, to| is_same_server(&Url::parse(from).unwrap(), &Url::parse(to).unwrap());
        assert!(same("https://example.com/mcp", "https://example.com/mcp/"));
        assert!(same("http://example.com/mcp", "https://example.com/mcp"));
        for (from, to) in [
            ("https://example.com/mcp", "http://example.com/mcp"),
            ("https://example.com/mcp", "https://example.com:8443/mcp"),
            ("http://example.com:8080/mcp", "https://example.com/mcp"),
            ("https://example.com/mcp", "https://other.example.com/mcp"),
        ] {
            assert!(!same(from, to), "{from} to {to}");
        }
    }
}
