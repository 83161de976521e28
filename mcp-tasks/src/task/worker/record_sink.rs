//! Where the ledger and the reports of a task's run go: into its record.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use mcp_tasks_core::{Ledger, StoreError, TaskRecord, error_chain};
use tokio::time::Instant;

use crate::run::progress::ProgressUpdate;
use crate::run::sink::{Sink, Written};
use crate::task::first_write::FirstWrite;
use crate::task::grace::GracePeriod;
use crate::task::records::TaskRecords;

pub(super) struct RecordSink {
    pub(super) records: Arc<TaskRecords>,
    pub(super) first_write: Arc<FirstWrite>,
    pub(super) record: Arc<TaskRecord>,
    /// Of a call whose work is no task yet.
    pub(super) grace: Option<Arc<GracePeriod>>,
}

impl Sink for RecordSink {
    // People and pollers look a few times a second; a store should not be written more often for their sake.
    const REPORT_INTERVAL: Duration = Duration::from_millis(100);

    fn first_write_due(&self) -> Option<Instant> {
        self.grace.as_ref().and_then(|grace| grace.due())
    }

    fn can_rest(&self) -> bool {
        // Without a record there is nothing to wake.
        self.grace.as_ref().is_none_or(|grace| grace.is_stored())
    }

    fn write(&self, ledger: Option<Ledger>, reports: Vec<ProgressUpdate>) -> BoxFuture<'static, Written> {
        let records = self.records.clone();
        let record = self.record.clone();
        let report = reports.into_iter().next_back();
        if let (Some(grace), Some(due)) = (&self.grace, self.first_write_due()) {
            return match ledger {
                Some(ledger) if Instant::now() >= due => {
                    let (grace, first_write) = (grace.clone(), self.first_write.clone());
                    Box::pin(async move {
                        match grace.become_task(&first_write, &record, ledger, report).await {
                            true => Written::Done,
                            false => Written::Fenced,
                        }
                    })
                }
                // Until then a result that the body sees needs no store: there is no task that could be run again.
                _ => {
                    grace.keep_report(report);
                    Box::pin(std::future::ready(Written::Done))
                }
            };
        }
        Box::pin(async move {
            let now = records.now();
            let (id, epoch) = (&record.task_id, record.execution.epoch);
            let report = report.map(|report| report.to_report());
            let updated = match (ledger, report) {
                (Some(ledger), report) => {
                    let mutation = move |r: &TaskRecord| r.journaled(epoch, now, &ledger, report.as_ref());
                    records.write_for_execution(id, mutation).await
                }
                (None, Some(report)) => {
                    let mutation = move |r: &TaskRecord| r.progressed(epoch, now, &report);
                    records.write_for_execution(id, mutation).await
                }
                (None, None) => return Written::Done,
            };
            match updated {
                Ok(Some(updated)) if updated.record.is_owned_by(epoch) => Written::Done,
                Ok(_) => Written::Fenced,
                Err(error @ StoreError::Refused { .. }) => {
                    tracing::error!(error = %error_chain(&error), "the run cannot be stored; its task fails");
                    Written::Refused
                }
                Err(error) => {
                    tracing::error!(error = %error_chain(&error), "the run cannot be stored; it is given up");
                    Written::Fenced
                }
            }
        })
    }
}
