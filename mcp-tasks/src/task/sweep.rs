//! Removing what has expired.

use std::sync::Arc;
use std::time::Duration;

use mcp_tasks_core::error_chain;

use super::admission::Admission;
use super::background::Job;
use super::records::TaskRecords;

/// After how long a sweep is given up: far more than one takes, so that only one that never comes back is met. What expires
/// later would not be removed otherwise.
const LONGEST_SWEEP: Duration = Duration::from_secs(600);

/// Removes expired tasks now and then from a store that does not do so by itself.
pub(crate) struct Sweep {
    pub(crate) records: Arc<TaskRecords>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) interval: Duration,
}

impl Job for Sweep {
    async fn wait(&mut self) {
        tokio::time::sleep(self.interval).await;
    }

    async fn work(&mut self) {
        let Some(sweep) = self.records.store().as_sweep() else {
            return;
        };
        let now = self.records.now();
        self.admission.quota.forget_expired(now);
        match tokio::time::timeout(LONGEST_SWEEP, sweep.sweep(now)).await {
            Ok(Ok(0)) => {}
            Ok(Ok(removed)) => tracing::info!(removed, "removed expired tasks"),
            Ok(Err(error)) => {
                tracing::warn!(error = %error_chain(&error), "could not remove expired tasks; trying again later");
            }
            Err(_) => tracing::warn!("removing expired tasks took too long and was given up; trying again later"),
        }
    }
}
