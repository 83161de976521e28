//! The write that stores a new task.

use std::sync::Arc;

use mcp_tasks_core::{StoreError, TaskRecord};

use super::admission::Admission;
use super::records::TaskRecords;
use super::unconfirmed::{OnEffect, Reconciler};

/// Stores tasks that were admitted.
#[derive(Debug)]
pub(crate) struct FirstWrite {
    records: Arc<TaskRecords>,
    admission: Arc<Admission>,
    reconciler: Arc<Reconciler>,
}

impl FirstWrite {
    pub(crate) const fn new(records: Arc<TaskRecords>, admission: Arc<Admission>, reconciler: Arc<Reconciler>) -> Self {
        Self {
            records,
            admission,
            reconciler,
        }
    }

    /// Stores a record that was admitted. Where it is not known in the end whether it is there, as the store failed or this
    /// future was dropped, `on_effect` is what is done about it.
    ///
    /// # Errors
    /// The store's; the record counts against no quota then, unless there is another of its id.
    pub(crate) async fn store(&self, record: TaskRecord, on_effect: OnEffect) -> Result<Arc<TaskRecord>, StoreError> {
        let counted = Counted {
            admission: &self.admission,
            record: &record,
        };
        let unconfirmed = self.reconciler.track_creation(&record, on_effect);
        let creation = self.records.create(&record).await;
        if let Ok(record) = &creation.outcome {
            tracing::info!(task_id = %record.task_id, tool = %record.tool, ttl_ms = record.ttl_ms, "task created");
        }
        // What counts under an id that exists already is the task that is there.
        if matches!(creation.outcome, Ok(_) | Err(StoreError::AlreadyExists { .. })) {
            counted.keep();
        }
        if let Some(unconfirmed) = unconfirmed.filter(|_| creation.is_certain) {
            unconfirmed.outcome_known();
        }
        creation.outcome
    }

    /// Removes a task that was stored and whose client was not told of it.
    pub(crate) fn take_back(&self, record: &TaskRecord) {
        self.admission.quota.release(record);
        drop(self.reconciler.track_creation(record, OnEffect::Remove));
    }

    /// The work of a task that was admitted ended before it was stored.
    pub(crate) fn not_needed(&self, record: &TaskRecord) {
        self.admission.quota.release(record);
    }

    pub(crate) const fn records(&self) -> &Arc<TaskRecords> {
        &self.records
    }
}

/// Takes a new task off the quota, unless it is stored.
struct Counted<'a> {
    admission: &'a Admission,
    record: &'a TaskRecord,
}

impl Counted<'_> {
    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.admission.quota.release(self.record);
    }
}
