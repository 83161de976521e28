//! Requests over rmcp's connection, and what the server sends by itself.

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientConfig, ClientNotification, ClientRequest, CustomRequest,
    ElicitRequestParams, ElicitResult, ErrorCode, GetExtensions, ProgressNotificationParam, ProgressToken,
    ProtocolVersion, RequestId, RequestMetaObject, ServerResult,
};
#[expect(deprecated, reason = "servers of older revisions still ask for them")]
use rmcp::model::{CreateMessageRequestParams, CreateMessageResult, ListRootsResult};
use rmcp::service::{
    ClientInitializeError, NotificationContext, Peer, PeerRequestOptions, RequestContext, ServiceError,
};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::{HttpStatusError, StreamableHttpError};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, sleep_until};

use super::pacing::deadline_after;
use super::wire::Verbatim;
use super::{ClientError, InputError, InputRequest, InputSupport, TransportError};

/// Where a request says what its client can do.
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// How many reports of progress wait to be observed; more are dropped, as only the newest matters.
const PROGRESS_BACKLOG: usize = 16;

/// The most of a `Retry-After` that is honoured: it may be a day, and no poll waits that long.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(900);

/// How a request fails.
#[derive(Debug)]
pub(super) enum RequestError {
    Refused(ErrorData),
    Transport(TransportError),
    Protocol(String),
}

impl From<RequestError> for ClientError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Refused(error) => Self::refused(error),
            RequestError::Transport(source) => Self::Transport { source, task: None },
            RequestError::Protocol(message) => Self::protocol(message),
        }
    }
}

/// The progress of calls, by their tokens.
#[derive(Debug, Default)]
pub(super) struct ProgressRoutes {
    routes: Mutex<HashMap<ProgressToken, mpsc::Sender<ProgressNotificationParam>>>,
}

impl ProgressRoutes {
    fn routes(&self) -> std::sync::MutexGuard<'_, HashMap<ProgressToken, mpsc::Sender<ProgressNotificationParam>>> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call's place among the routes.
struct ProgressRoute<'p> {
    progress: &'p ProgressRoutes,
    token: ProgressToken,
}

impl Drop for ProgressRoute<'_> {
    fn drop(&mut self) {
        self.progress.routes().remove(&self.token);
    }
}

/// How many requests of a server may wait until those before them are answered. A tool that asks several things at once asks
/// a few; a server that asks without an end is to fill no memory.
const MAX_PENDING_REQUESTS: usize = 64;

/// The client that rmcp sees: it answers the requests of servers of older revisions.
#[derive(Debug)]
pub(super) struct ConnectionHandler {
    input_support: InputSupport,
    config: ClientConfig,
    progress: std::sync::Arc<ProgressRoutes>,
    /// Held by the request that is being answered.
    turn: tokio::sync::Mutex<()>,
    /// Places for those that wait, and for that one.
    permits: Semaphore,
}

impl ConnectionHandler {
    pub(super) fn new(
        input_support: InputSupport,
        config: ClientConfig,
        progress: std::sync::Arc<ProgressRoutes>,
    ) -> Self {
        Self {
            input_support,
            config,
            progress,
            turn: tokio::sync::Mutex::default(),
            permits: Semaphore::new(MAX_PENDING_REQUESTS + 1),
        }
    }

    async fn answer<T: DeserializeOwned>(&self, method: &str, params: Value) -> Result<T, ErrorData> {
        let Ok(_permit) = self.permits.try_acquire() else {
            let words = format!("{MAX_PENDING_REQUESTS} requests wait for an answer already");
            return Err(ErrorData::internal_error(words, None));
        };
        let _turn = self.turn.lock().await;
        let request = InputRequest::decode(method, &json!({"method": method, "params": params}));
        let unsupported = || ErrorData::new(ErrorCode::METHOD_NOT_FOUND, InputError::NotSupported.to_string(), None);
        let answer = self.input_support.answer(&request).ok_or_else(unsupported)?;
        let answer = answer.await.map_err(|error| match error {
            InputError::NotSupported => unsupported(),
            InputError::Later(reason) => ErrorData::internal_error(reason, None),
        })?;
        serde_json::from_value(answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }
}

#[expect(deprecated, reason = "servers of older revisions still ask for them")]
impl ClientHandler for ConnectionHandler {
    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let params = serde_json::to_value(params).unwrap_or_default();
        self.answer("elicitation/create", params).await
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let params = serde_json::to_value(params).unwrap_or_default();
        self.answer("sampling/createMessage", params).await
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        self.answer("roots/list", json!({})).await
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let route = self.progress.routes().get(&params.progress_token).cloned();
        if let Some(route) = route {
            // A report that is dropped is followed by a newer one.
            let _ = route.try_send(params);
        }
    }

    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }
}

/// Cancels a request at the server (`notifications/cancelled`) when the future that waits for its answer is dropped.
struct CancelOnDrop<'a> {
    peer: &'a Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let reason = Some("nobody waits for the answer any more".to_owned());
            let params = CancelledNotificationParam::new(Some(id), reason);
            let notification = ClientNotification::CancelledNotification(CancelledNotification::new(params));
            let _ = peer.send_notification(notification).await;
        });
    }
}

/// How long an answer is waited for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Timeout {
    /// From the request to the answer, whatever the server tells in between.
    Answer(Duration),
    /// From the request, or from its last progress, to the answer.
    Progress(Duration),
    /// Without end.
    Never,
}

/// A request to be sent.
#[derive(Debug)]
pub(super) struct Outgoing<'a> {
    pub(super) request: ClientRequest,
    pub(super) timeout: Timeout,
    /// What the request declares.
    pub(super) capabilities: &'a Value,
}

/// A request whose answer comes whole.
pub(super) fn verbatim(method: &'static str, params: Map<String, Value>, mark: Verbatim) -> ClientRequest {
    let mut request = CustomRequest::new(method, Some(Value::Object(params)));
    request.extensions_mut().insert(mark);
    ClientRequest::CustomRequest(request)
}

/// Whether the server knows requests that say what their client can do.
pub(super) fn declares_per_request(peer: &Peer<RoleClient>) -> bool {
    peer.peer_info()
        .is_some_and(|info| info.protocol_version >= ProtocolVersion::V_2026_07_28)
}

/// Sends a request and waits for its answer.
///
/// When it is dropped, or the time is over, the server is sent a cancellation in the background: a server that does not
/// read would hold it up. rmcp's own limit waits for that.
pub(super) async fn send(
    peer: &Peer<RoleClient>,
    progress: &ProgressRoutes,
    outgoing: Outgoing<'_>,
    mut on_progress: impl FnMut(ProgressNotificationParam),
) -> Result<ServerResult, RequestError> {
    let mut options = PeerRequestOptions::no_options();
    if declares_per_request(peer) {
        let mut meta = RequestMetaObject::new();
        meta.0.0.insert(CAPABILITIES.to_owned(), outgoing.capabilities.clone());
        options = options.with_meta(meta);
    }
    let timeout = match outgoing.timeout {
        Timeout::Answer(timeout) | Timeout::Progress(timeout) => Some(timeout),
        Timeout::Never => None,
    };
    let over = |from: Instant| deadline_after(from, timeout.unwrap_or(Duration::MAX));
    let mut expiry = std::pin::pin!(sleep_until(over(Instant::now())));
    let sent = peer.send_request_with_option(outgoing.request, options).await;
    let handle = sent.map_err(|error| service_error(peer, error))?;
    let mut cancel_on_drop = CancelOnDrop {
        peer,
        id: Some(handle.id.clone()),
    };
    let (reports, mut reported) = mpsc::channel(PROGRESS_BACKLOG);
    let route = ProgressRoute {
        progress,
        token: handle.progress_token.clone(),
    };
    progress.routes().insert(route.token.clone(), reports);
    let mut answer = std::pin::pin!(handle.await_response());
    let answer = loop {
        tokio::select! {
            biased;
            () = &mut expiry, if timeout.is_some() => {
                return Err(timed_out(timeout.unwrap_or_default()));
            }
            Some(report) = reported.recv() => {
                on_progress(report);
                if matches!(outgoing.timeout, Timeout::Progress(_)) {
                    expiry.as_mut().reset(over(Instant::now()));
                }
            }
            answer = &mut answer => break answer,
        }
    };
    cancel_on_drop.id = None;
    answer.map_err(|error| service_error(peer, error))
}

/// Why there is no connection.
pub(super) fn connect_error(error: ClientInitializeError) -> ClientError {
    let transport = |message: String| {
        RequestError::Transport(TransportError {
            message,
            status: None,
            retry_after: None,
            is_temporary: false,
            is_silent_child: false,
        })
    };
    let failed = match error {
        ClientInitializeError::JsonRpcError(error) => RequestError::Refused(error),
        ClientInitializeError::TransportError { error, .. } => send_error(&error, false),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => return connect_error(*fallback),
        ClientInitializeError::ConnectionClosed(when) => {
            transport(format!("the server closed the connection ({when})"))
        }
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let versions: Vec<_> = server_supported.iter().map(ProtocolVersion::as_str).collect();
            RequestError::Protocol(format!("the server speaks only {}", versions.join(", ")))
        }
        // The rest show whole messages in their text.
        _ => {
            RequestError::Protocol("the server does not speak MCP: its answer to the first request is none".to_owned())
        }
    };
    failed.into()
}

/// The time for an answer is over.
fn timed_out(timeout: Duration) -> RequestError {
    RequestError::Transport(TransportError {
        message: format!("the server did not answer within {timeout:?}"),
        status: None,
        retry_after: None,
        is_temporary: true,
        is_silent_child: false,
    })
}

fn service_error(peer: &Peer<RoleClient>, error: ServiceError) -> RequestError {
    let transport = |message: String, is_temporary| {
        RequestError::Transport(TransportError {
            message,
            status: None,
            retry_after: None,
            is_temporary,
            is_silent_child: false,
        })
    };
    match error {
        ServiceError::McpError(error) => RequestError::Refused(error),
        // One response that ended early, or the whole connection.
        ServiceError::TransportClosed if peer.is_transport_closed() => {
            transport("the connection to the server is closed".to_owned(), false)
        }
        ServiceError::TransportClosed => transport("the server ended its response without an answer".to_owned(), true),
        ServiceError::TransportSend(error) => send_error(&error, !peer.is_transport_closed()),
        other => RequestError::Protocol(other.to_string()),
    }
}

fn send_error(error: &DynamicTransportError, is_open: bool) -> RequestError {
    let mut failed = TransportError {
        message: String::new(),
        status: None,
        retry_after: None,
        is_temporary: false,
        is_silent_child: false,
    };
    let http = error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>();
    match http {
        Some(StreamableHttpError::HttpStatus(error)) => {
            failed.message = match error.status {
                300..=399 => format!(
                    "the server sends the request to another place (HTTP {}), which is not followed: connect to that place",
                    error.status
                ),
                status => format!("the server answered with HTTP {status}"),
            };
            failed.status = Some(error.status);
            failed.retry_after = retry_after(error);
            failed.is_temporary = matches!(error.status, 408 | 425 | 429 | 500..=599);
        }
        Some(StreamableHttpError::AuthRequired(_)) => {
            failed.message = "the server wants another token (HTTP 401)".to_owned();
            failed.status = Some(401);
        }
        Some(StreamableHttpError::InsufficientScope(_)) => {
            failed.message = "the token does not allow this (HTTP 403)".to_owned();
            failed.status = Some(403);
        }
        Some(StreamableHttpError::Client(error)) => {
            // Not the error itself, whose text has the URL in it, and a URL may hold a secret.
            failed.message = format!("the server cannot be reached: {}", causes(error));
            failed.is_temporary = !error.is_builder();
        }
        Some(
            error @ (StreamableHttpError::UnexpectedServerResponse(_)
            | StreamableHttpError::UnexpectedContentType(_)
            | StreamableHttpError::ResponseBodyTooLarge { .. }
            | StreamableHttpError::Deserialize(_)),
        ) => {
            let words = format!("the server sent no answer: {error}");
            // rmcp puts the body of a response behind a colon, and there may be none.
            let words = words.trim_end().trim_end_matches(':');
            return RequestError::Protocol(words.to_owned());
        }
        _ => {
            failed.message = format!("the server cannot be reached: {}", error.error);
            failed.is_temporary = is_open;
        }
    }
    RequestError::Transport(failed)
}

/// What an HTTP error comes from, without the error itself.
pub(super) fn causes(error: &reqwest::Error) -> String {
    let mut causes = Vec::new();
    let mut source = error.source();
    while let Some(cause) = source {
        causes.push(cause.to_string());
        source = cause.source();
    }
    match causes.is_empty() {
        true => "the connection failed".to_owned(),
        false => causes.join(": "),
    }
}

/// RFC 9110, section 10.2.3: seconds, or a date.
fn retry_after(error: &HttpStatusError) -> Option<Duration> {
    let text = error.retry_after.as_deref()?.trim();
    let after = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        // A date is one of the wall clock.
        Err(_) => httpdate::parse_http_date(text)
            .ok()?
            .duration_since(SystemTime::now())
            .unwrap_or_default(),
    };
    Some(after.min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let after = |text: &str| retry_after(&HttpStatusError::new(429, Some(text.to_owned())));
        assert_eq!(after("7"), Some(Duration::from_secs(7)));
        assert_eq!(after("99999999999"), Some(MAX_RETRY_AFTER));
        assert_eq!(after("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        assert_eq!(after("Fri, 31 Dec 9999 23:59:59 GMT"), Some(MAX_RETRY_AFTER));
        for odd in ["", "soon", "-1", "1.5"] {
            assert_eq!(after(odd), None, "{odd}");
        }
    }
}
