//! A server process, the ways to speak to it, and how to wait for what it does.

mod listen;
mod process;
mod request;
mod task;
mod wire;

pub(crate) use process::{Fixture, command};
pub(crate) use request::{Reply, Request, TASKS, V2026, declared, undeclared, words};
pub(crate) use wire::Wire;

use std::time::Duration;

use tokio::time::Instant;

/// Overall time within which anything has to happen that a test waits for: far more than a loaded machine needs, so that
/// only what never happens fails by it.
const LIMIT: Duration = Duration::from_secs(30);

/// Looks again and again until there is something to see.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(Instant::now() < end, "never happened: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// The future's outcome, which has to come within [`LIMIT`].
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(LIMIT, future).await {
        Ok(outcome) => outcome,
        Err(_) => panic!("never happened: {what}"),
    }
}
