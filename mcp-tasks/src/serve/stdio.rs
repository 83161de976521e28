//! Serving over standard input and output.

use rmcp::{ServerHandler, ServiceExt};
use tokio_util::sync::CancellationToken;

use super::{Error, Result, Server};

fn failed(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Transport {
        transport: "stdio",
        source: source.into(),
    }
}

/// Serves the one client at stdin and stdout until it goes away or `stop` fires. Nothing else may write to stdout.
pub(super) async fn serve<H: ServerHandler>(
    server: Server<H>,
    stop: CancellationToken,
    ready: impl FnOnce(&str),
) -> Result<()> {
    ready("stdio");
    let handler = server.handler();
    let serving = handler.serve_with_ct(rmcp::transport::stdio(), stop.clone());
    let running = tokio::select! {
        running = serving => running,
        // The client never spoke.
        () = stop.cancelled() => return Ok(()),
    };
    match running {
        Ok(running) => {
            running.waiting().await.map_err(failed)?;
            Ok(())
        }
        // A client that closes the pipe before it says anything ends the server as any other end of stdin does.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(failed(error)),
    }
}
