//! By which clock the client tells whether the time of a task is over.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use mcp_tasks_core::Timestamp;

/// Gives the present instant.
#[derive(Clone)]
pub(super) struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    pub(super) fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.0)()
    }
}

/// The clock of the operating system.
impl Default for Clock {
    fn default() -> Self {
        Self::new(|| SystemTime::now().into())
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}
