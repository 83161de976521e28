//! Serving over standard input and output.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ServerHandler, ServiceExt};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::{Error, Result, Server};
use crate::host::handler::TaskServer;

mod handshake;
mod id_scanner;
mod input;
mod json_line;
mod lines;
mod output;
mod refusal;
mod subscriptions;

use handshake::HandshakeFilter;
use input::Input;
use output::Output;
use subscriptions::Subscriptions;

/// How long the last lines may take to be read, once nothing more will be said.
const LAST_LINES: Duration = Duration::from_secs(1);

fn transport_error(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Transport {
        transport: "stdio",
        source: source.into(),
    }
}

/// Serves the one client at stdin and stdout until it goes away or `stop` fires. Nothing else may write to stdout.
///
/// A stop is the end of the input to rmcp, which gives calls under way five seconds to be answered; its own cancellation
/// would end them at once. Returns when the input ended.
pub(super) async fn serve<H: ServerHandler>(
    server: Server<H>,
    stop: CancellationToken,
    ready: impl FnOnce(&str),
) -> Result<Instant> {
    ready("stdio");
    let ended = Arc::new(OnceLock::new());
    let operations = server.runtime.operations.clone();
    let handler = TaskServer::new(operations.clone(), (server.handler)());
    let (lines, written) = output::start_writer().map_err(transport_error)?;
    let over = CancellationToken::new();
    let subscriptions = {
        let info = handler.get_info().server_info;
        let filtering = TaskServer::new(operations.clone(), (server.handler)());
        Subscriptions::new(operations, info, lines.clone(), over.clone(), move |params| {
            params.handler_filter(&filtering)
        })
    };
    let output = Output::new(lines.clone(), subscriptions.clone());
    let input =
        Input::start(stop, ended.clone(), subscriptions, lines, over.clone().drop_guard()).map_err(transport_error)?;
    let versions = handler.supported_protocol_versions().into_owned();
    let transport = HandshakeFilter::new(AsyncRwTransport::new_server(input, output), versions);
    let served = match handler.serve(transport).await {
        Ok(running) => running.waiting().await.map(|_| ()).map_err(transport_error),
        // A client that closes the pipe before it says anything ends the server as any other end of stdin does.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(transport_error(error)),
    };
    over.cancel();
    // What is said already goes out, unless the client does not read it.
    match timeout(LAST_LINES, written).await {
        Ok(Ok(Err(error))) => tracing::debug!(%error, "stdout cannot be written to"),
        Ok(_) => {}
        Err(_) => tracing::warn!("stopping with lines that the client does not read"),
    }
    served?;
    Ok(ended.get().copied().unwrap_or_else(Instant::now))
}
