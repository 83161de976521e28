//! What can go wrong in a store, by what the caller can do about it.

use crate::{RecordError, TaskId};

/// A store's failure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A live task has this id. Take another id.
    #[error("a task with the id {id} exists")]
    AlreadyExists {
        /// The id.
        id: TaskId,
    },
    /// The backend cannot be reached, or did not answer in time. The operation may have taken effect: calling again
    /// with the same write id is safe.
    #[error("the task store cannot be reached: {reason}")]
    Unavailable {
        /// What failed, without secrets.
        reason: String,
        /// The driver's error.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The stored record cannot be read. It was left alone.
    #[error("the stored record of task {id} cannot be used")]
    Unreadable {
        /// The task.
        id: TaskId,
        /// Why.
        #[source]
        source: RecordError,
    },
    /// The backend refuses, and would refuse again: no space, no rights, a record over its size limit.
    #[error("the task store refuses: {reason}")]
    Refused {
        /// What it refuses, without secrets.
        reason: String,
        /// The driver's error.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

impl StoreError {
    /// Whether the same call may succeed later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }
}
