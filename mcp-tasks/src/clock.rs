//! Whose time it is.

use std::fmt::Debug;
use std::time::SystemTime;

use mcp_tasks_core::Timestamp;

/// Tells the time to the engine and, through it, to the store.
///
/// Tests bring a clock of their own; everything else uses [`SystemClock`]. A clock may jump backwards by a little, as
/// system clocks do: timestamps of one task never do.
pub trait Clock: Send + Sync + Debug {
    /// The present instant.
    fn now(&self) -> Timestamp;
}

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct SystemClock;

impl SystemClock {
    /// The system's clock.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::from(SystemTime::now())
    }
}
