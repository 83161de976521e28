//! Signals that stop the server.

use std::thread;

use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

/// Fires `stop` on the first SIGINT or SIGTERM; the second ends the process, for an operator who does not want to wait.
///
/// Signals are caught when this returns, so that one sent as soon as the server is ready stops it in good order. They are
/// awaited on a thread and a runtime of their own: the application's runtime may hang at its end, on a blocking thread, and
/// that is when the second signal is needed most.
pub(super) fn cancel_on_signal(stop: CancellationToken) {
    let watching = Builder::new_current_thread().enable_all().build().and_then(|runtime| {
        let signals = {
            let _inside = runtime.enter();
            Signals::new()?
        };
        thread::Builder::new()
            .name("mcp-tasks-signals".to_owned())
            .spawn(move || runtime.block_on(watch(signals, stop)))
    });
    if let Err(error) = watching {
        tracing::warn!(%error, "signals cannot be caught: they end the process at once");
    }
}

async fn watch(mut signals: Signals, stop: CancellationToken) {
    let signal = signals.next().await;
    tracing::info!(signal, "stopping");
    stop.cancel();
    let signal = signals.next().await;
    tracing::warn!(signal, "stopping at once");
    // The code a shell gives a process that was interrupted.
    std::process::exit(130);
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
