//! Requests over rmcp's connection.

use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientNotification, ClientRequest, CustomRequest, GetExtensions,
    ProgressNotificationParam, ProtocolVersion, RequestId, RequestMetaObject, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::connection_handler::{ProgressRoute, ProgressRoutes};
use super::pacing::deadline_after;
use super::request_error::{RequestError, service_error, timed_out};
use super::wire::Verbatim;

/// Where a request says what its client can do.
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// How many reports of progress wait to be observed; more are dropped, as only the newest matters.
const PROGRESS_BACKLOG: usize = 16;

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
            let reason = Some("the answer is not waited for any more".to_owned());
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
    let _route = ProgressRoute::open(progress, handle.progress_token.clone(), reports);
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
