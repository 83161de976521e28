//! Requests that fail, and for how long they are tried again.

use std::time::Duration;

use backon::ExponentialBackoff;
use tokio::time::Instant;

use super::super::Pacing;
use super::super::pace::after;

/// How long a server that does not come back is left alone because it asks for that, one `Retry-After` after the other. An
/// announced maintenance is over by then; a server that asks for ever keeps nobody waiting.
const MAX_LEFT_ALONE: Duration = Duration::from_secs(3600);

/// Requests that fail, since the last one that did not.
#[derive(Debug)]
pub(super) struct Trouble {
    backoff: ExponentialBackoff,
    /// When it has lasted too long.
    deadline: Instant,
    /// What the deadline may still be moved by.
    left_alone: Duration,
}

impl Trouble {
    pub(super) fn new(pacing: &Pacing, now: Instant) -> Self {
        Self {
            backoff: pacing.backoff(),
            deadline: after(now, pacing.patience),
            left_alone: MAX_LEFT_ALONE,
        }
    }

    /// After another failure: how long to wait before the next attempt; `None` if that was the last one. The server asks
    /// to be left alone for so long.
    pub(super) fn pause(&mut self, pacing: &Pacing, now: Instant, asked_for: Duration) -> Option<Duration> {
        let backoff = self.backoff.next().unwrap_or(pacing.cap);
        let left_alone = asked_for.min(self.left_alone);
        self.left_alone -= left_alone;
        self.deadline = after(self.deadline, left_alone);
        (now < self.deadline).then(|| backoff.max(asked_for).max(pacing.floor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long a server is tried that always asks for so much.
    fn tried_for(asked_for: Duration, patience: Duration) -> Duration {
        let pacing = Pacing::default().patience(patience);
        let begin = Instant::now();
        let mut now = begin;
        let mut trouble = Trouble::new(&pacing, now);
        while let Some(pause) = trouble.pause(&pacing, now, asked_for) {
            assert!(pause >= asked_for.max(Duration::from_millis(500)));
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
        assert!(tried_for(longest, minute) >= MAX_LEFT_ALONE);
        for asked_for in [Duration::from_secs(1), minute, longest] {
            assert!(tried_for(asked_for, 5 * minute) <= MAX_LEFT_ALONE + 5 * minute + asked_for + slack);
        }
        // A patience without end does not overflow.
        let pacing = Pacing::default().patience(Duration::MAX);
        let now = Instant::now();
        assert!(Trouble::new(&pacing, now).pause(&pacing, now, longest).is_some());
    }
}
