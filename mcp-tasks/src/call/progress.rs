//! Reports of a run inside a call.

use std::time::Duration;

use futures::future::BoxFuture;
use mcp_tasks_core::Ledger;
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;

use crate::run::progress::ProgressUpdate;
use crate::run::sink::{Sink, Written};

/// Where the client asked for reports.
pub(crate) type ProgressTarget = (Peer<RoleServer>, ProgressToken);

/// Sends reports as `notifications/progress` (2026-07-28, "Progress").
#[derive(Debug, Clone)]
pub(super) struct PeerSink {
    pub(super) to: Option<ProgressTarget>,
}

impl PeerSink {
    /// Sends the reports, in their order.
    pub(super) async fn send(self, reports: Vec<ProgressUpdate>) {
        let Some((peer, token)) = self.to else { return };
        for report in reports {
            let mut params = ProgressNotificationParam::new(token.clone(), report.progress());
            params.total = report.total;
            params.message = report.message;
            if let Err(error) = peer.notify_progress(params).await {
                tracing::debug!(%error, "a progress notification could not be sent");
                return;
            }
        }
    }
}

impl Sink for PeerSink {
    // Every report is a message of its own here, and the connection slows the body's reports down by itself.
    const REPORT_INTERVAL: Duration = Duration::ZERO;

    fn write(&self, _ledger: Option<Ledger>, reports: Vec<ProgressUpdate>) -> BoxFuture<'static, Written> {
        let sink = self.clone();
        Box::pin(async move {
            sink.send(reports).await;
            Written::Done
        })
    }
}
