//! Serving over standard input and output.

use std::sync::{Arc, OnceLock};

use rmcp::service::ServerInitializeError;
use rmcp::{ServerHandler, ServiceExt};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::{Error, FLUSH_TIMEOUT, Result, Server};
use crate::host::handler::TaskServer;

mod handshake;
mod id_scanner;
mod lines;
mod refusal;
mod stdin;
mod stdout;
mod subscriptions;
mod transport;
mod unanswered;

use subscriptions::Subscriptions;
use transport::StdioTransport;

fn transport_error(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Transport {
        transport: "stdio",
        source: source.into(),
    }
}

/// Serves the one client at stdin and stdout until it closes stdin or `stop` fires. Nothing else may write to stdout.
///
/// To rmcp a stop is the end of the input, after which it gives calls under way five seconds to be answered; its own
/// cancellation would end them at once. Returns when the input ended.
pub(super) async fn serve<H: ServerHandler>(
    server: Server<H>,
    stop: CancellationToken,
    ready: impl FnOnce(&str),
) -> Result<Instant> {
    ready("stdio");
    let handler = || TaskServer::new(server.runtime.operations.clone(), (server.handler)());
    let (serving, filtering) = (handler(), handler());
    let (outgoing, written) = stdout::start_writer().map_err(transport_error)?;
    let (input_end, ended) = (CancellationToken::new(), Arc::new(OnceLock::new()));
    let subscriptions = Subscriptions::new(
        server.runtime.operations.clone(),
        serving.get_info().server_info,
        outgoing.clone(),
        input_end.clone(),
        move |params| params.handler_filter(&filtering),
    );
    let transport = StdioTransport::new(
        stdin::start_reader().map_err(transport_error)?,
        outgoing,
        Arc::new(subscriptions),
        serving.supported_protocol_versions().into_owned(),
        stop,
        input_end.clone(),
        ended.clone(),
    );
    let served = match serving.serve(transport).await {
        Ok(running) => running.waiting().await.map(|_| ()).map_err(transport_error),
        // A client may close stdin before it says anything.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(transport_error(error)),
    };
    input_end.cancel();
    match timeout(FLUSH_TIMEOUT, written).await {
        Ok(Ok(Err(error))) => tracing::debug!(%error, "stdout cannot be written to"),
        Ok(_) => {}
        Err(_) => tracing::warn!("stopping with lines that the client does not read"),
    }
    served?;
    Ok(ended.get().copied().unwrap_or_else(Instant::now))
}
