//! Handing work to threads and getting the answer back.

use std::any::Any;
use std::panic::resume_unwind;
use std::time::Duration;

use mcp_tasks_core::StoreError;
use tokio::sync::oneshot;

use super::error::ended;
use crate::store::failure::late;

/// What a thread answers: the outcome, or the panic of what it was given to run.
pub(super) type Answer<T> = Result<Result<T, StoreError>, Box<dyn Any + Send>>;

/// Waits for the answer, and for no longer than `limit`.
pub(super) async fn answered<T>(answer: oneshot::Receiver<Answer<T>>, limit: Duration) -> Result<T, StoreError> {
    match tokio::time::timeout(limit, answer).await {
        Ok(Ok(Ok(outcome))) => outcome,
        // It was the caller's own mutation that panicked.
        Ok(Ok(Err(panic))) => resume_unwind(panic),
        Ok(Err(_)) => Err(ended()),
        Err(_) => Err(late("SQLite", limit)),
    }
}

/// Starts a thread.
pub(super) fn start(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(run);
    started.map(drop).map_err(|error| StoreError::Unavailable {
        reason: "the system starts no more threads".to_owned(),
        source: Some(Box::new(error)),
    })
}
