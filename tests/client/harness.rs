//! Servers for the client, and a user who answers.

#[allow(dead_code, reason = "what the protocol's tests need besides")]
#[path = "../protocol/harness/process.rs"]
mod process;
mod script;
mod user;

use std::time::Duration;

use tokio::time::Instant;

pub(crate) use self::process::{Fixture, command};
pub(crate) use self::script::{Asked, Reply, Script, Served, created, done, task, working};
pub(crate) use self::user::User;

/// Overall time within which anything has to happen that a test waits for: far more than a loaded machine needs.
const LIMIT: Duration = Duration::from_secs(60);

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
