//! What happens on the way to a result.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{ClientError, DetailedTask, SavedTask};

/// Something that happens while a call or a task is waited for.
#[derive(Debug)]
#[non_exhaustive]
pub enum TaskEvent<'a> {
    /// The call became a task. Store it, and it can be [resumed](super::TaskClient::resume) after a crash.
    Created(&'a SavedTask),
    /// The saved form of the task has changed: store it again. It comes after a question was answered and before the answer
    /// is sent, so that a program that dies in between does not ask its user twice.
    Checkpoint(&'a SavedTask),
    /// The server said something new about the task.
    Status(&'a DetailedTask),
    /// Progress of a call that is no task.
    #[non_exhaustive]
    Progress {
        /// How far it is.
        progress: f64,
        /// How far it goes, if known.
        total: Option<f64>,
        /// What is being done.
        message: Option<&'a str>,
    },
    /// The server could not be reached, and will be tried again.
    #[non_exhaustive]
    Retrying {
        /// What went wrong.
        error: &'a ClientError,
        /// When the next attempt is.
        after: Duration,
    },
}

/// An observer's function. It is called in the task that waits, so it should be quick; writing a small file is.
pub(super) type Observe = dyn Fn(TaskEvent<'_>) + Send + Sync;

/// A client's observer.
#[derive(Clone, Default)]
pub(super) struct Observer(Option<Arc<Observe>>);

impl Observer {
    pub(super) fn new(observe: impl Fn(TaskEvent<'_>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(observe)))
    }

    pub(super) fn tell(&self, event: TaskEvent<'_>) {
        if let Some(observe) = &self.0 {
            observe(event);
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observer").field(&self.0.is_some()).finish()
    }
}
