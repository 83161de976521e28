//! Waiting for what has to happen.

use std::time::Duration;

use tokio::time::Instant;

/// Overall time within which anything has to happen that a test waits for: far more than a loaded machine needs, so that
/// only what never happens fails by it.
pub const LIMIT: Duration = Duration::from_secs(60);

/// How often is looked: often enough that no test is held up by it.
const LOOK: Duration = Duration::from_millis(2);

/// Looks again and again until there is something to see.
///
/// # Panics
/// If there is nothing for a minute, with `what` did not happen.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(Instant::now() < end, "never happened: {what}");
        tokio::time::sleep(LOOK).await;
    }
}

/// The future's outcome, which has to come within a minute.
///
/// # Panics
/// If it does not come, with `what` did not happen.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(LIMIT, future).await {
        Ok(outcome) => outcome,
        Err(_) => panic!("never happened: {what}"),
    }
}
