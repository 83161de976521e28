//! The contract of a store over a plain map, as plainly as it can be said: what other stores are compared with.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Arc, Mutex};

use mcp_tasks_core::{
    Change, Mutation, StoreError, StoreFuture, Sweep, TaskId, TaskRecord, TaskStore, Timestamp, Updated, WriteId,
};

#[derive(Debug, Default)]
pub(crate) struct ReferenceStore(Mutex<BTreeMap<TaskId, TaskRecord>>);

fn is_there(record: &TaskRecord, now: Timestamp) -> bool {
    match record.ttl_ms {
        None => true,
        Some(ttl) => now.as_millis() <= record.created_at.as_millis() + ttl,
    }
}

impl TaskStore for ReferenceStore {
    fn create(&self, mut record: TaskRecord) -> StoreFuture<'_, Arc<TaskRecord>> {
        let mut map = self.0.lock().unwrap();
        let live = map
            .get(&record.task_id)
            .filter(|present| is_there(present, record.created_at));
        let answer = match live {
            Some(present) if present.last_write.is_some() && present.last_write == record.last_write => {
                Ok(Arc::new(present.clone()))
            }
            Some(_) => Err(StoreError::AlreadyExists { id: record.task_id }),
            None => {
                record.version = 1;
                map.insert(record.task_id.clone(), record.clone());
                Ok(Arc::new(record))
            }
        };
        Box::pin(ready(answer))
    }

    fn get<'a>(&'a self, id: &'a TaskId, now: Timestamp) -> StoreFuture<'a, Option<Arc<TaskRecord>>> {
        let map = self.0.lock().unwrap();
        let found = map.get(id).filter(|record| is_there(record, now));
        Box::pin(ready(Ok(found.cloned().map(Arc::new))))
    }

    fn update<'a>(
        &'a self,
        id: &'a TaskId,
        now: Timestamp,
        write: WriteId,
        mutation: Mutation,
    ) -> StoreFuture<'a, Option<Updated>> {
        let mut map = self.0.lock().unwrap();
        let answer = match map.get_mut(id) {
            None => None,
            Some(record) if !is_there(record, now) => None,
            Some(record) if record.last_write == Some(write) => Some(Updated::new(Arc::new(record.clone()), true)),
            Some(record) => match mutation(record) {
                Change::Write(next) => {
                    let version = record.version;
                    *record = *next;
                    record.task_id = id.clone();
                    record.version = version + 1;
                    record.last_write = Some(write);
                    Some(Updated::new(Arc::new(record.clone()), true))
                }
                _ => Some(Updated::new(Arc::new(record.clone()), false)),
            },
        };
        Box::pin(ready(Ok(answer)))
    }

    fn delete<'a>(&'a self, id: &'a TaskId) -> StoreFuture<'a, ()> {
        self.0.lock().unwrap().remove(id);
        Box::pin(ready(Ok(())))
    }

    fn as_sweep(&self) -> Option<&dyn Sweep> {
        Some(self)
    }
}

impl Sweep for ReferenceStore {
    fn sweep(&self, now: Timestamp) -> StoreFuture<'_, u64> {
        let mut map = self.0.lock().unwrap();
        let before = map.len();
        map.retain(|_, record| is_there(record, now));
        Box::pin(ready(Ok((before - map.len()) as u64)))
    }
}
