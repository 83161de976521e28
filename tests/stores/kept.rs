//! A store with what it stands on.

use std::sync::Arc;

use mcp_tasks_core::{
    ChangeFeed, ExpiredLeases, Mutation, StoreFuture, Sweep, TaskId, TaskRecord, TaskStore, Timestamp, Updated, WriteId,
};

/// A store, and what has to be there for as long: its server, its directory.
#[derive(Debug)]
pub(crate) struct Kept<S, K> {
    pub(crate) store: S,
    pub(crate) keeps: K,
}

impl<S: TaskStore, K: std::fmt::Debug + Send + Sync> TaskStore for Kept<S, K> {
    fn create(&self, record: TaskRecord) -> StoreFuture<'_, Arc<TaskRecord>> {
        self.store.create(record)
    }

    fn get<'a>(&'a self, id: &'a TaskId, now: Timestamp) -> StoreFuture<'a, Option<Arc<TaskRecord>>> {
        self.store.get(id, now)
    }

    fn update<'a>(
        &'a self,
        id: &'a TaskId,
        now: Timestamp,
        write: WriteId,
        mutation: Mutation,
    ) -> StoreFuture<'a, Option<Updated>> {
        self.store.update(id, now, write, mutation)
    }

    fn delete<'a>(&'a self, id: &'a TaskId) -> StoreFuture<'a, ()> {
        self.store.delete(id)
    }

    fn as_sweep(&self) -> Option<&dyn Sweep> {
        self.store.as_sweep()
    }

    fn as_expired_leases(&self) -> Option<&dyn ExpiredLeases> {
        self.store.as_expired_leases()
    }

    fn as_change_feed(&self) -> Option<&dyn ChangeFeed> {
        self.store.as_change_feed()
    }
}
