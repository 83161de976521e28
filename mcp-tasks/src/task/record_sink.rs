//! Where the ledger and the reports of a task's run go: into its record.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use mcp_tasks_core::{Change, Ledger, StoreError, TaskRecord, Updated, error_chain};
use tokio::time::Instant;

use super::Engine;
use super::birth::Birth;
use crate::run::driver::{Sink, Written};
use crate::run::progress::ProgressUpdate;

pub(crate) struct RecordSink {
    pub(crate) engine: Engine,
    pub(crate) record: Arc<TaskRecord>,
    /// The call that waits, while the work is no task yet.
    pub(crate) birth: Option<Arc<Birth>>,
}

impl Sink for RecordSink {
    // People and pollers look a few times a second; a store should not be written more often for their sake.
    const REPORT_INTERVAL: Duration = Duration::from_millis(100);

    fn first_write_due(&self) -> Option<Instant> {
        self.birth.as_ref().and_then(|birth| birth.due())
    }

    fn can_rest(&self) -> bool {
        // Without a record there is nothing to wake.
        self.birth.as_ref().is_none_or(|birth| birth.is_born())
    }

    fn write(&self, ledger: Option<Ledger>, reports: Vec<ProgressUpdate>) -> BoxFuture<'static, Written> {
        let engine = self.engine.clone();
        let record = self.record.clone();
        let report = reports.into_iter().next_back();
        if let (Some(birth), Some(due)) = (&self.birth, self.first_write_due()) {
            return match ledger {
                Some(ledger) if Instant::now() >= due => {
                    let birth = birth.clone();
                    Box::pin(async move {
                        match engine.mint_running(&birth, &record, ledger, report).await {
                            true => Written::Done,
                            false => Written::Fenced,
                        }
                    })
                }
                // Until then a result that the body sees needs no store: there is no task that could be run again.
                _ => {
                    birth.keep(report);
                    Box::pin(std::future::ready(Written::Done))
                }
            };
        }
        Box::pin(async move {
            let now = engine.now();
            let epoch = record.execution.epoch;
            let report = report.map(|report| report.to_report());
            let updated = match (ledger, report) {
                (Some(ledger), report) => {
                    let mutation = move |r: &TaskRecord| r.journaled(epoch, now, &ledger, report.as_ref());
                    engine.persist(&record, mutation).await
                }
                (None, Some(report)) => {
                    engine
                        .persist(&record, move |r| r.progressed(epoch, now, &report))
                        .await
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

impl Engine {
    /// Writes for the execution of `record`, again and again while the store cannot be reached, until its lease is over.
    pub(crate) async fn persist(
        &self,
        record: &TaskRecord,
        mutation: impl Fn(&TaskRecord) -> Change + Send + Sync + 'static,
    ) -> Result<Option<Updated>, StoreError> {
        self.write(&record.task_id, self.inner.settings.lease, mutation).await
    }
}
