//! Signals that stop the server.

use tokio_util::sync::CancellationToken;

/// Fires `stop` on the first SIGINT or SIGTERM; the second ends the process, for an operator who will not wait.
pub(super) fn cancel_on_signal(stop: CancellationToken) {
    tokio::spawn(async move {
        let mut signals = match Signals::new() {
            Ok(signals) => signals,
            Err(error) => {
                tracing::warn!(%error, "signals cannot be caught; the server stops without notice");
                return;
            }
        };
        let signal = signals.next().await;
        tracing::info!(signal, "stopping");
        stop.cancel();
        let signal = signals.next().await;
        tracing::warn!(signal, "stopping at once");
        // The code a shell gives a process that was interrupted.
        std::process::exit(130);
    });
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> &'static str {
        match tokio::signal::ctrl_c().await {
            Ok(()) => "Ctrl-C",
            Err(_) => std::future::pending().await,
        }
    }
}
