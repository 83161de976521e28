//! Ctrl-C, whichever way it comes.

use tokio::sync::mpsc;

use crate::outcome::{CommandError, Outcome};

/// Why the program is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// Ctrl-C. A second one means more.
    Key,
    /// SIGTERM or SIGHUP: no user is there to press a key again.
    Terminate,
}

/// What interrupts the program, in its order.
#[derive(Debug)]
pub(crate) struct Interrupts {
    sender: mpsc::UnboundedSender<Interrupt>,
    receiver: mpsc::UnboundedReceiver<Interrupt>,
}

impl Interrupts {
    /// From here on signals do not end the program by themselves.
    pub(crate) fn new() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        let keys = sender.clone();
        tokio::spawn(
            async move { while tokio::signal::ctrl_c().await.is_ok() && keys.send(Interrupt::Key).is_ok() {} },
        );
        #[cfg(unix)]
        for kind in [
            tokio::signal::unix::SignalKind::terminate(),
            tokio::signal::unix::SignalKind::hangup(),
        ] {
            let ends = sender.clone();
            tokio::spawn(async move {
                let Ok(mut signal) = tokio::signal::unix::signal(kind) else {
                    return;
                };
                while signal.recv().await.is_some() && ends.send(Interrupt::Terminate).is_ok() {}
            });
        }
        Self { sender, receiver }
    }

    /// For what else interrupts.
    pub(crate) fn sender(&self) -> mpsc::UnboundedSender<Interrupt> {
        self.sender.clone()
    }

    /// The next one. Cancel safe.
    pub(crate) async fn next(&mut self) -> Interrupt {
        match self.receiver.recv().await {
            Some(interrupt) => interrupt,
            // There is a sender in `self`.
            None => std::future::pending().await,
        }
    }

    /// The future's outcome, unless it is interrupted, which drops it.
    pub(crate) async fn or<T>(&mut self, future: impl Future<Output = T>) -> Result<T, CommandError> {
        tokio::select! {
            outcome = future => Ok(outcome),
            _ = self.next() => Err(CommandError::new(Outcome::Detached, "interrupted")),
        }
    }
}
