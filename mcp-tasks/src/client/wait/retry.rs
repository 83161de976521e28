//! How long requests that fail are tried again.

use std::time::Duration;

use backon::ExponentialBackoff;
use tokio::time::Instant;

use crate::client::Pacing;
use crate::client::pacing::deadline_after;

/// The most that `Retry-After`, one after the other, adds to the time for which a server is tried. An announced maintenance
/// is over by then; a server that asks for more time for ever does not hold up the wait.
const MAX_TOTAL_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// Requests that fail, since the last one that did not.
#[derive(Debug)]
pub(super) struct RetryState {
    backoff: ExponentialBackoff,
    /// When it has lasted too long.
    deadline: Instant,
    /// What the deadline may still be moved by.
    retry_after_left: Duration,
}

impl RetryState {
    pub(super) fn new(pacing: &Pacing, now: Instant) -> Self {
        Self {
            backoff: pacing.backoff(),
            deadline: deadline_after(now, pacing.retry_timeout),
            retry_after_left: MAX_TOTAL_RETRY_AFTER,
        }
    }

    /// After another failure: how long to wait before the next attempt; `None` if that was the last one. The server asks
    /// to be left alone for so long.
    pub(super) fn next_delay(&mut self, pacing: &Pacing, now: Instant, retry_after: Duration) -> Option<Duration> {
        let backoff = self.backoff.next().unwrap_or(pacing.cap);
        let retry_after_left = retry_after.min(self.retry_after_left);
        self.retry_after_left -= retry_after_left;
        self.deadline = deadline_after(self.deadline, retry_after_left);
        (now < self.deadline).then(|| backoff.max(retry_after).max(pacing.floor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long a server is tried that always asks for so much.
    fn tried_for(retry_after: Duration, patience: Duration) -> Duration {
        let pacing = Pacing::default().retry_timeout(patience);
        let begin = Instant::now();
        let mut now = begin;
        let mut retries = RetryState::new(&pacing, now);
        while let Some(pause) = retries.next_delay(&pacing, now, retry_after) {
            assert!(pause >= retry_after.max(Duration::from_millis(500)));
            now += pause;
        }
        now - begin
    }

    #[test]
    fn what_is_asked_for_does_not_count_up_to_an_hour() {
        let minute = Duration::from_secs(60);
        let longest = Duration::from_secs(900);
        let slack = minute;
        assert!(tried_for(Duration::ZERO, 5 * minute) <= 5 * minute + slack);
        assert!(tried_for(longest, minute) >= MAX_TOTAL_RETRY_AFTER);
        for retry_after in [Duration::from_secs(1), minute, longest] {
            assert!(tried_for(retry_after, 5 * minute) <= MAX_TOTAL_RETRY_AFTER + 5 * minute + retry_after + slack);
        }
        // A patience without end does not overflow.
        let pacing = Pacing::default().retry_timeout(Duration::MAX);
        let now = Instant::now();
        assert!(
            RetryState::new(&pacing, now)
                .next_delay(&pacing, now, longest)
                .is_some()
        );
    }
}
