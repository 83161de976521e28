//! How often a task is polled, and how long a server that fails is tried.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::Instant;

/// The longest wait, where a time is too long for the clock: a year, which no process sees the end of.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// `from` plus `time`, without an overflow.
pub(super) fn deadline_after(from: Instant, time: Duration) -> Instant {
    from.checked_add(time).unwrap_or(from + FOR_EVER)
}

/// How often a server is asked for a task, and how long one waits for it.
///
/// ```
/// use std::time::Duration;
///
/// use mcp_tasks::client::Pacing;
///
/// let patient = Pacing::default().retry_timeout(Duration::from_secs(3600));
/// # let _ = patient;
/// ```
#[derive(Debug, Clone)]
pub struct Pacing {
    pub(super) first_poll: Duration,
    pub(super) default_poll_interval: Duration,
    pub(super) floor: Duration,
    pub(super) cap: Duration,
    pub(super) request_timeout: Duration,
    pub(super) call_timeout: Option<Duration>,
    pub(super) retry_timeout: Duration,
}

impl Default for Pacing {
    fn default() -> Self {
        Self {
            // Servers suggest seconds for work that is often done at once.
            first_poll: Duration::from_millis(50),
            default_poll_interval: Duration::from_secs(1),
            // A progress bar need not move faster, and a server that says 0 is not polled in a loop.
            floor: Duration::from_millis(100),
            // A server that says more is polled all the same: no user waits longer for a result that is there.
            cap: Duration::from_secs(300),
            request_timeout: Duration::from_secs(30),
            call_timeout: Some(Duration::from_secs(600)),
            // A restart, or a failover, of a server is over by then.
            retry_timeout: Duration::from_secs(300),
        }
    }
}

impl Pacing {
    /// How soon a new task is polled for the first time. 50 ms unless set.
    #[must_use]
    pub const fn first_poll(mut self, after: Duration) -> Self {
        self.first_poll = after;
        self
    }

    /// How often a task is polled whose server gives no `pollIntervalMs`. One second unless set.
    #[must_use]
    pub const fn default_poll_interval(mut self, every: Duration) -> Self {
        self.default_poll_interval = every;
        self
    }

    /// The shortest and the longest time between two polls, whatever the server says. 100 ms and five minutes unless set.
    #[must_use]
    pub const fn bounds(mut self, floor: Duration, cap: Duration) -> Self {
        self.floor = floor;
        self.cap = cap;
        self
    }

    /// How long one request may take that is no `tools/call`: `tasks/*`, and a page of `tools/list`. Progress that the
    /// server reports on it gives it no more time. 30 seconds unless set.
    #[must_use]
    pub const fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = timeout;
        self
    }

    /// How long a `tools/call` may take from one progress notification to the next; `None` is without end. Ten minutes
    /// unless set.
    #[must_use]
    pub const fn call_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.call_timeout = timeout;
        self
    }

    /// How long a server that cannot be reached is tried again while a task is waited for. Five minutes unless set. What
    /// the server itself asks for with `Retry-After` does not count, up to an hour in all.
    #[must_use]
    pub const fn retry_timeout(mut self, timeout: Duration) -> Self {
        self.retry_timeout = timeout;
        self
    }

    /// The time to the next poll.
    pub(super) fn interval(&self, server: Option<Duration>) -> Duration {
        // `clamp` would panic on bounds that are the wrong way round.
        server
            .unwrap_or(self.default_poll_interval)
            .min(self.cap)
            .max(self.floor)
    }

    /// The waits after failures: doubling, with jitter, so that the clients of a server that comes back do not all come
    /// back with it.
    pub(super) fn backoff(&self) -> ExponentialBackoff {
        ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(500).max(self.floor))
            .with_max_delay(Duration::from_secs(30))
            .with_jitter_seed(getrandom::u64().unwrap_or_default())
            .without_max_times()
            .build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_bounded_and_the_larger_value_is_honoured() {
        let pacing = Pacing::default();
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(pacing.interval(None), Duration::from_secs(1));
        assert_eq!(pacing.interval(ms(0)), Duration::from_millis(100));
        assert_eq!(pacing.interval(ms(5000)), Duration::from_secs(5));
        assert_eq!(pacing.interval(ms(u64::MAX)), Duration::from_secs(300));
        let now = Instant::now();
        assert_eq!(
            deadline_after(now, Duration::from_secs(1)),
            now + Duration::from_secs(1)
        );
        assert!(deadline_after(now, Duration::MAX) > now);
        let odd = pacing.bounds(Duration::from_secs(9), Duration::from_secs(1));
        assert_eq!(odd.interval(None), Duration::from_secs(9));
    }
}
