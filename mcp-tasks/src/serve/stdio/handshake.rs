//! The beginning of a connection, in which rmcp takes requests alone.

use rmcp::RoleServer;
use rmcp::model::{ClientRequest, GetMeta, JsonRpcMessage, ProtocolVersion};
use rmcp::service::RxJsonRpcMessage;

use crate::host::extension::PROTOCOL_VERSION;

/// Keeps from rmcp what comes before the first request and is no request: rmcp ends the server for it. A client may well have
/// something to say that early: that it no longer waits for the `server/discover` it began with, or an answer to a question
/// of the process that was there before.
#[derive(Debug)]
pub(super) struct HandshakeFilter {
    /// What the server speaks.
    versions: Vec<ProtocolVersion>,
    is_over: bool,
}

impl HandshakeFilter {
    pub(super) const fn new(versions: Vec<ProtocolVersion>) -> Self {
        Self {
            versions,
            is_over: false,
        }
    }

    /// Whether the message is for rmcp.
    pub(super) fn admits(&mut self, message: &RxJsonRpcMessage<RoleServer>) -> bool {
        if self.is_over {
            return true;
        }
        let JsonRpcMessage::Request(request) = message else {
            tracing::debug!("a message before the first request that is no request is ignored");
            return false;
        };
        self.is_over = self.is_ended_by(&request.request);
        true
    }

    /// Whether rmcp begins to serve with this request: with `initialize`, or with one whose `_meta` says what `initialize`
    /// would. Until then it answers each request by itself.
    fn is_ended_by(&self, request: &ClientRequest) -> bool {
        match request {
            ClientRequest::InitializeRequest(_) => true,
            ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
            request => {
                let meta = request.get_meta();
                meta.missing_required_keys(&PROTOCOL_VERSION).is_empty()
                    && meta
                        .protocol_version()
                        .is_some_and(|version| self.versions.contains(&version))
            }
        }
    }
}
