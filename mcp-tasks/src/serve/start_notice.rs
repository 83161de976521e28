//! What a start prints in a program that has no log.

use std::fmt::Display;
use std::io::{self, Write};

use tracing::dispatcher;
use tracing::subscriber::NoSubscriber;

/// Prints to stderr, or does nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StartNotice {
    enabled: bool,
}

impl StartNotice {
    /// Enabled in a program that has set no `tracing` subscriber.
    pub(super) fn unless_logged() -> Self {
        Self {
            enabled: dispatcher::get_default(|dispatch| dispatch.is::<NoSubscriber>()),
        }
    }

    /// Prints one line. `eprintln!` would panic where stderr is closed.
    pub(super) fn print(self, text: impl Display) {
        if self.enabled {
            let _ = writeln!(io::stderr().lock(), "mcp-tasks: {text}");
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing::subscriber::with_default;

    use super::*;

    #[test]
    fn it_is_enabled_only_without_a_subscriber() {
        let quiet = with_default(
            tracing_subscriber::fmt().with_writer(io::sink).finish(),
            StartNotice::unless_logged,
        );
        assert!(!quiet.enabled);
        assert!(with_default(NoSubscriber::default(), StartNotice::unless_logged).enabled);
    }
}
