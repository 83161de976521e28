//! What several goes come to.

use std::time::Duration;

pub(crate) use mcp_tasks_tests::table::{NOT_MEASURED, Table, median, micros, millis, ratio, seconds, whole};

use crate::drive::Sample;

/// Several goes at the same, and what comes of them.
#[derive(Debug, Default)]
pub(crate) struct Rounds(pub(crate) Vec<Sample>);

impl Rounds {
    /// The median of the rates.
    pub(crate) fn rate(&self) -> f64 {
        median(self.0.iter().map(Sample::rate))
    }

    /// The median of what each round's rate is to that of the other's round next to it: a machine that slows down for a
    /// while slows down both.
    pub(crate) fn rate_to(&self, other: &Self) -> f64 {
        median(self.0.iter().zip(&other.0).map(|(a, b)| a.rate() / b.rate()))
    }

    /// CPU seconds of the server for 10,000 requests, over all the rounds: the clock that counts them is a coarse one.
    pub(crate) fn cpu(&self) -> Option<f64> {
        let cpu: Option<Duration> = self.0.iter().map(|sample| sample.cpu).sum();
        let requests: u64 = self.0.iter().map(|sample| sample.requests).sum();
        cpu.filter(|_| requests > 0)
            .map(|cpu| cpu.as_secs_f64() * 1e4 / requests as f64)
    }

    /// How many requests an operation took.
    pub(crate) fn requests(&self) -> f64 {
        let requests: u64 = self.0.iter().map(|sample| sample.requests).sum();
        let operations: u64 = self.0.iter().map(|sample| sample.operations).sum();
        requests as f64 / operations as f64
    }

    /// The median over the rounds of a quantile of their latencies.
    pub(crate) fn latency(&self, share: f64) -> Duration {
        let nanos = median(self.0.iter().map(|sample| sample.quantile(share).as_secs_f64()));
        Duration::try_from_secs_f64(nanos).unwrap_or_default()
    }
}
