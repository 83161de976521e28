//! The contract of a store over a plain map, as plainly as it can be said: what other stores are compared with. It shares
//! no code with any of them.

use std::collections::BTreeMap;

use crate::{Change, Mutation, TaskId, TaskRecord, Timestamp, WriteId};

/// Records under their ids.
#[derive(Debug, Default)]
pub(super) struct PlainMap(BTreeMap<TaskId, TaskRecord>);

/// What a creation was answered with.
#[derive(Debug, PartialEq)]
pub(super) enum Created {
    New(TaskRecord),
    Repeated(TaskRecord),
    Taken,
}

/// What an update was answered with.
#[derive(Debug, PartialEq)]
pub(super) enum Changed {
    Nothing,
    Written(TaskRecord),
    Repeated(TaskRecord),
    Kept(TaskRecord),
}

fn is_there(record: &TaskRecord, now: Timestamp) -> bool {
    match record.ttl_ms {
        None => true,
        Some(ttl) => now.as_millis() <= record.created_at.as_millis() + ttl,
    }
}

impl PlainMap {
    /// What is stored, expired or not.
    pub(super) fn stored(&self, id: &TaskId) -> Option<&TaskRecord> {
        self.0.get(id)
    }

    pub(super) fn create(&mut self, mut record: TaskRecord) -> Created {
        match self.0.get(&record.task_id) {
            Some(present) if is_there(present, record.created_at) => {
                if present.last_write.is_some() && present.last_write == record.last_write {
                    Created::Repeated(present.clone())
                } else {
                    Created::Taken
                }
            }
            _ => {
                record.version = 1;
                self.0.insert(record.task_id.clone(), record.clone());
                Created::New(record)
            }
        }
    }

    pub(super) fn get(&self, id: &TaskId, now: Timestamp) -> Option<&TaskRecord> {
        self.0.get(id).filter(|record| is_there(record, now))
    }

    pub(super) fn update(&mut self, id: &TaskId, now: Timestamp, write: WriteId, mutation: &Mutation) -> Changed {
        let Some(record) = self.0.get_mut(id).filter(|record| is_there(record, now)) else {
            return Changed::Nothing;
        };
        if record.last_write == Some(write) {
            return Changed::Repeated(record.clone());
        }
        match mutation(record) {
            Change::Keep => Changed::Kept(record.clone()),
            Change::Write(next) => {
                let version = record.version;
                *record = *next;
                record.task_id = id.clone();
                record.version = version + 1;
                record.last_write = Some(write);
                Changed::Written(record.clone())
            }
        }
    }

    pub(super) fn delete(&mut self, id: &TaskId) -> bool {
        self.0.remove(id).is_some()
    }

    pub(super) fn sweep(&mut self, now: Timestamp) -> u64 {
        let before = self.0.len();
        self.0.retain(|_, record| is_there(record, now));
        (before - self.0.len()) as u64
    }
}
