//! Programs in reading order; see the `examples` directory beside this one. What they share is here.

use std::io::{IsTerminal, stderr};

use tracing_subscriber::EnvFilter;

/// Logs to stderr, because stdout belongs to the protocol when a server is on stdio. Everything from `info` upward, of
/// rmcp, which logs each request, from `warn`; `RUST_LOG` says otherwise.
pub fn log_to_stderr() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info,rmcp=warn"));
    tracing_subscriber::fmt()
        .with_writer(stderr)
        .with_ansi(stderr().is_terminal())
        .with_env_filter(filter)
        .init();
}
