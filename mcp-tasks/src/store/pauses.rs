//! The pauses between attempts to hear of changes again.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

/// Growing and scattered pauses that do not end.
pub(super) struct Pauses {
    builder: ExponentialBuilder,
    next: ExponentialBackoff,
    longest: Duration,
}

impl Pauses {
    pub(super) fn new(first: Duration, longest: Duration) -> Self {
        let builder = ExponentialBuilder::default()
            .with_min_delay(first)
            .with_max_delay(longest)
            .with_jitter()
            .without_max_times();
        Self {
            builder,
            next: builder.build(),
            longest,
        }
    }

    /// The next one is the first again.
    pub(super) fn begin_anew(&mut self) {
        self.next = self.builder.build();
    }

    /// Waits for the next one.
    pub(super) async fn pause(&mut self) {
        tokio::time::sleep(self.next.next().unwrap_or(self.longest)).await;
    }
}
