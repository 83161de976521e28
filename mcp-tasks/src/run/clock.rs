//! The clock that the server goes by.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::time::SystemTime;

use mcp_tasks_core::Timestamp;

#[cfg(any(test, feature = "testing"))]
#[cfg_attr(
    not(feature = "testing"),
    allow(unreachable_pub, dead_code, reason = "public with the feature `testing`")
)]
mod tokio_clock;

#[cfg(all(test, not(feature = "testing")))]
pub(crate) use tokio_clock::TokioClock;
#[cfg(feature = "testing")]
pub use tokio_clock::TokioClock;

/// Tells the time to the engine and, through it, to the store.
///
/// Tests bring a clock of their own; everything else uses [`SystemClock`]. A clock may jump backwards by a little, as
/// system clocks do: timestamps of one task never do.
pub trait Clock: Send + Sync + Debug {
    /// The present instant.
    fn now(&self) -> Timestamp;

    /// Resolves when this clock is about to show `at`. The caller looks at [`now`](Self::now) then, and waits again if it is
    /// still early.
    ///
    /// Waits of tools and the deadlines of running tasks go by it. As provided it waits on tokio's timer for what is left
    /// now, which is right for a clock that goes as fast as tokio's; one that is set by hand has to resolve when it is
    /// set.
    fn timer(&self, at: Timestamp) -> Timer {
        let left = at.saturating_since(self.now());
        Box::pin(tokio::time::sleep(left))
    }
}

/// A wait on a [`Clock`].
pub type Timer = Pin<Box<dyn Future<Output = ()> + Send>>;

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
