//! Calls to a store that may be out of reach for a while, or never answer.

use std::future::Future;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use mcp_tasks_core::{StoreError, error_chain};
use tokio::time::Instant;

/// How long a request waits for a store that cannot be reached or does not answer: long enough for a lost acknowledgement or
/// a restart of the store's connection, and shorter than clients wait for an answer.
pub(crate) const REQUEST_PATIENCE: Duration = Duration::from_secs(2);

/// Calls `operation` again and again while the store cannot be reached, for as long as `patience` lasts. A write must name
/// the same write id each time: a write whose acknowledgement was lost is then found, and not applied twice.
pub(crate) async fn patiently<T, F>(patience: Duration, mut operation: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    // Long enough not to hammer a store that restarts, short enough that a blip is not noticed.
    const FIRST_DELAY: Duration = Duration::from_millis(20);
    const LONGEST_DELAY: Duration = Duration::from_secs(2);

    let policy = ExponentialBuilder::default()
        .with_min_delay(FIRST_DELAY)
        .with_max_delay(LONGEST_DELAY)
        .with_jitter()
        .without_max_times()
        .with_total_delay(Some(patience));
    let deadline = Instant::now() + patience;
    // A call that never comes back must not outlast the patience either: another node may have taken over by then.
    let bounded = || answered_by(deadline, operation());
    bounded
        .retry(policy)
        // An attempt that waited the patience out is the last: another would be sent and given up at once.
        .when(|error| error.is_retryable() && Instant::now() < deadline)
        .notify(|error, delay| {
            tracing::warn!(error = %error_chain(error), ?delay, "the task store cannot be reached; trying again");
        })
        .await
}

/// The outcome of one call, as a store that is out of reach if it is not there by `deadline`.
pub(crate) async fn answered_by<T>(
    deadline: Instant,
    operation: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    tokio::time::timeout_at(deadline, operation).await.unwrap_or_else(|_| {
        let reason = "it did not answer in time".to_owned();
        Err(StoreError::Unavailable { reason, source: None })
    })
}
