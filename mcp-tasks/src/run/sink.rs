//! Where the ledger and the reports of a run go while it runs.

use std::time::Duration;

use futures::future::BoxFuture;
use mcp_tasks_core::Ledger;
use tokio::time::Instant;

use super::progress::ProgressUpdate;

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// Stored or sent, or given up for good where nothing depends on it.
    Done,
    /// The run is fenced off.
    Fenced,
    /// Refused for good.
    Refused,
}

/// Where a run's ledger and reports go.
pub(crate) trait Sink: Send {
    /// The shortest time between two writes that carry nothing but reports.
    const REPORT_INTERVAL: Duration;

    /// When the ledger is to be written even if nothing waits for it; `None` if never.
    fn first_write_due(&self) -> Option<Instant> {
        None
    }

    /// Whether a run can be put away while its body waits for time to go by.
    fn can_rest(&self) -> bool {
        false
    }

    /// Stores `ledger`, if the body waits for that, and sends `reports`.
    fn write(&self, ledger: Option<Ledger>, reports: Vec<ProgressUpdate>) -> BoxFuture<'static, Written>;
}
