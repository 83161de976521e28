//! tokio's time as a clock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use mcp_tasks_core::Timestamp;
use tokio::time::Instant;

use super::Clock;

/// A clock that goes with tokio's time, so that where a test pauses tokio, tasks stand still and expire with it.
#[derive(Debug)]
pub struct TokioClock {
    start: SystemTime,
    begun: Instant,
    ahead_ms: AtomicU64,
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl TokioClock {
    /// A clock that begins at the same instant in every test: midnight UTC of 28 July 2026, the day of the protocol's
    /// revision.
    #[must_use]
    pub fn new() -> Self {
        Self::at(SystemTime::UNIX_EPOCH + Duration::from_millis(1_785_196_800_000))
    }

    /// A clock that begins at `time`.
    #[must_use]
    pub fn at(time: SystemTime) -> Self {
        Self {
            start: time,
            begun: Instant::now(),
            ahead_ms: AtomicU64::new(0),
        }
    }

    /// Puts this clock forward, and no timer of tokio's.
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.ahead_ms.fetch_add(by, Ordering::SeqCst);
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        let ahead = Duration::from_millis(self.ahead_ms.load(Ordering::SeqCst));
        (self.start + self.begun.elapsed() + ahead).into()
    }
}
