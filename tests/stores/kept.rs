//! A store with what it stands on.

use mcp_tasks_core::TaskStore;

/// A store, and what has to be there for as long: its server, its directory.
#[derive(Debug)]
pub(crate) struct Kept<S, K> {
    pub(crate) store: S,
    pub(crate) keeps: K,
}

impl<S: TaskStore, K: std::fmt::Debug + Send + Sync> TaskStore for Kept<S, K> {
    mcp_tasks_core::delegate_task_store! { store => all }
}
