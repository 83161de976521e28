//! A tool inside a call: no record, the result is the answer.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use mcp_tasks_core::{ClientCapabilities, Ledger};
use rmcp::ErrorData;
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::driver::{Ending, Sink, Written, drive};
use super::run::{Carrier, Run};
use super::{Client, Engine};
use crate::__private::Invocation;
use crate::context::{ProgressUpdate, ToolContext};
use crate::registry::RegisteredTool;

/// A call whose arguments were checked and whose guard passed.
#[derive(Debug)]
pub(crate) struct SynchronousCall<'a> {
    pub(crate) tool: &'a Arc<RegisteredTool>,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) client: Client,
    /// Where `notifications/progress` go, if the client asked for them.
    pub(crate) progress: Option<(Peer<RoleServer>, ProgressToken)>,
    /// Fires when the client goes away.
    pub(crate) cancelled: CancellationToken,
}

/// Sends reports as `notifications/progress` (2026-07-28, "Progress").
struct PeerSink {
    to: Option<(Peer<RoleServer>, ProgressToken)>,
}

impl PeerSink {
    async fn send(to: Option<(Peer<RoleServer>, ProgressToken)>, reports: Vec<ProgressUpdate>) {
        let Some((peer, token)) = to else { return };
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
        let to = self.to.clone();
        Box::pin(async move {
            Self::send(to, reports).await;
            Written::Done
        })
    }
}

impl Engine {
    /// Runs the tool inside the call.
    ///
    /// # Errors
    /// The JSON-RPC error of the tool, or `-32603` when it panicked.
    pub(crate) async fn call(&self, call: SynchronousCall<'_>) -> Result<CallToolResult, ErrorData> {
        let run = Run::new(
            Carrier::Synchronous {
                support: call.tool.support(),
            },
            ClientCapabilities::new(call.client.capabilities),
            &Ledger::default(),
            call.cancelled,
        );
        let invocation = Invocation::new(
            ToolContext::new(run.clone()),
            call.client.caller,
            self.inner.states.clone(),
            call.arguments,
        );
        let sink = PeerSink { to: call.progress };
        let ending = drive(
            &run,
            call.tool.descriptor.call(invocation),
            &sink,
            std::future::pending(),
        )
        .await;
        // What was reported last goes out before the response, and nothing after it.
        PeerSink::send(sink.to, run.take_reports()).await;
        match ending {
            Ending::Returned(Ok(result)) => Ok(result),
            Ending::Returned(Err(error)) => error.into_outcome(),
            Ending::Panicked(panic) => {
                tracing::error!(panic, tool = %call.tool.name, "the tool panicked");
                Err(ErrorData::internal_error("The tool failed unexpectedly", None))
            }
            Ending::Faulted(fault) => Err(ErrorData::internal_error(fault.to_string(), None)),
            Ending::Cancelled => Err(ErrorData::internal_error("the call was cancelled", None)),
            ending => {
                tracing::error!(?ending, tool = %call.tool.name, "a synchronous call ended in a way it cannot");
                Err(ErrorData::internal_error("Internal error", None))
            }
        }
    }
}
