//! What older handshakes do not say.

use std::borrow::Cow;
use std::future::Future;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, ServerJsonRpcMessage, TASKS_EXTENSION_ID};
use rmcp::transport::Transport;

/// A connection whose `initialize` does not declare the Tasks extension.
///
/// Only requests of 2026-07-28 can declare it, each for itself. rmcp sends the capabilities of its `server/discover` in the
/// older handshake too, and there are servers that would make tasks of the calls that follow it.
#[derive(Debug)]
pub(in crate::client) struct LegacyHandshake<T>(pub(in crate::client) T);

fn remove_tasks_extension(message: &mut ClientJsonRpcMessage) {
    let JsonRpcMessage::Request(request) = message else {
        return;
    };
    let ClientRequest::InitializeRequest(initialize) = &mut request.request else {
        return;
    };
    let declared = &mut initialize.params.capabilities.extensions;
    if let Some(extensions) = declared {
        extensions.remove(TASKS_EXTENSION_ID);
        if extensions.is_empty() {
            *declared = None;
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for LegacyHandshake<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        mut message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        remove_tasks_extension(&mut message);
        self.0.send(message)
    }

    fn receive(&mut self) -> impl Future<Output = Option<ServerJsonRpcMessage>> + Send {
        self.0.receive()
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.0.close()
    }
}
