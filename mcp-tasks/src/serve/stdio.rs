//! Serving over standard input and output.

use std::sync::{Arc, OnceLock};

use rmcp::{ServerHandler, ServiceExt};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Error, Result, Server};
use crate::task_server::TaskServer;

mod input;

use input::Input;

fn failed(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
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
    let input = Input::open(stop, ended.clone()).map_err(failed)?;
    let handler = TaskServer::new(server.runtime.clone(), (server.handler)());
    match handler.serve((input, tokio::io::stdout())).await {
        Ok(running) => {
            running.waiting().await.map_err(failed)?;
        }
        // A client that closes the pipe before it says anything ends the server as any other end of stdin does.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => {}
        Err(error) => return Err(failed(error)),
    }
    Ok(ended.get().copied().unwrap_or_else(Instant::now))
}
