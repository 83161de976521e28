//! Ways of several nodes to one store.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use mcp_tasks_core::{
    ExpiredLeases, Mutation, StoreError, StoreFuture, TaskId, TaskRecord, TaskStore, Timestamp, Updated, WriteId,
};

use super::TestStore;

/// One node's way to the store they share, which can be cut. A node that is cut off, one that is frozen and one that died
/// look the same to the others.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) store: Arc<TestStore>,
    is_cut: AtomicBool,
    created: Mutex<Vec<TaskId>>,
}

impl Link {
    pub(crate) fn new(store: &Arc<TestStore>) -> Arc<Self> {
        Arc::new(Self {
            store: store.clone(),
            is_cut: AtomicBool::new(false),
            created: Mutex::default(),
        })
    }

    /// Has a scan over this way find this task, and not those alone that were created over it.
    pub(crate) fn shows(&self, id: &str) {
        self.created
            .lock()
            .expect("no test panics inside")
            .push(TaskId::new(id));
    }

    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
    }

    pub(crate) fn mend(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
    }

    fn through<'a, T: Send + 'a>(&'a self, operation: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        Box::pin(async move {
            if self.is_cut.load(Ordering::SeqCst) {
                return Err(StoreError::Unavailable {
                    reason: "the link is cut".to_owned(),
                    source: None,
                });
            }
            operation.await
        })
    }
}

impl TaskStore for Link {
    fn create(&self, record: TaskRecord) -> StoreFuture<'_, Arc<TaskRecord>> {
        self.created
            .lock()
            .expect("no test panics inside")
            .push(record.task_id.clone());
        self.through(self.store.create(record))
    }

    fn get<'a>(&'a self, id: &'a TaskId, now: Timestamp) -> StoreFuture<'a, Option<Arc<TaskRecord>>> {
        self.through(self.store.get(id, now))
    }

    fn update<'a>(
        &'a self,
        id: &'a TaskId,
        now: Timestamp,
        write: WriteId,
        mutation: Mutation,
    ) -> StoreFuture<'a, Option<Updated>> {
        self.through(self.store.update(id, now, write, mutation))
    }

    fn delete<'a>(&'a self, id: &'a TaskId) -> StoreFuture<'a, ()> {
        self.through(self.store.delete(id))
    }

    fn as_expired_leases(&self) -> Option<&dyn ExpiredLeases> {
        Some(self)
    }
}

impl ExpiredLeases for Link {
    fn expired_leases(&self, now: Timestamp, limit: usize) -> StoreFuture<'_, Vec<Arc<TaskRecord>>> {
        let ids = self.created.lock().expect("no test panics inside").clone();
        self.through(Box::pin(async move {
            let mut found = Vec::new();
            for id in ids {
                found.extend(
                    self.store
                        .get(&id, now)
                        .await?
                        .filter(|record| record.is_abandoned(now)),
                );
            }
            found.truncate(limit);
            Ok(found)
        }))
    }
}
