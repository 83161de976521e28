//! The beginning of a conversation, in which rmcp takes requests alone.

use rmcp::RoleServer;
use rmcp::model::{ClientRequest, GetMeta, JsonRpcMessage, ProtocolVersion};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// A transport that keeps from rmcp what comes before the conversation is opened and is no request.
///
/// rmcp ends the server for it. But a client may well have something to say that early: that it no longer waits for the
/// `server/discover` it began with, or an answer to a question of the process that was there before.
#[derive(Debug)]
pub(super) struct HandshakeFilter<T> {
    inner: T,
    /// What the server speaks.
    versions: Vec<ProtocolVersion>,
    is_open: bool,
}

impl<T> HandshakeFilter<T> {
    pub(super) const fn new(inner: T, versions: Vec<ProtocolVersion>) -> Self {
        Self {
            inner,
            versions,
            is_open: false,
        }
    }

    /// Whether the message is for rmcp.
    fn admits(&mut self, message: &RxJsonRpcMessage<RoleServer>) -> bool {
        if self.is_open {
            return true;
        }
        let JsonRpcMessage::Request(request) = message else {
            return false;
        };
        self.is_open = self.opens(&request.request);
        true
    }

    /// Whether rmcp takes up the conversation with this request: with a handshake, or with one that says by itself what a
    /// handshake would. Until then it answers each by itself.
    fn opens(&self, request: &ClientRequest) -> bool {
        match request {
            ClientRequest::InitializeRequest(_) => true,
            ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
            request => {
                let meta = request.get_meta();
                meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
                    && meta
                        .protocol_version()
                        .is_some_and(|version| self.versions.contains(&version))
            }
        }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for HandshakeFilter<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.inner.send(message)
    }

    /// Cancel safe as far as the transport inside is.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = self.inner.receive().await?;
            if self.admits(&message) {
                return Some(message);
            }
            tracing::debug!("what came before the first request and is none is passed over");
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}
