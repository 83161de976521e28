//! One execution of a task: the body is run from the top against the ledger, and its end is written.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use mcp_tasks_core::{Change, Json, Ledger, Mismatch, StoreError, TaskRecord, Updated};
use rmcp::ErrorData;
use rmcp::model::CallToolResult;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::driver::{Ending, Sink, Written, drive};
use super::run::{Carrier, Run};
use super::{Engine, error_chain};
use crate::__private::Invocation;
use crate::argument::Arguments;
use crate::caller::Caller;
use crate::context::{ProgressUpdate, ToolContext};
use crate::registry::RegisteredTool;

/// The words a client gets for what is the server's own fault; the log has the rest.
const INTERNAL: &str = "Internal error";

/// Writes the run's ledger and reports into the task's record.
struct RecordSink {
    engine: Engine,
    record: Arc<TaskRecord>,
}

impl Sink for RecordSink {
    // People and pollers look a few times a second; a store should not be written more often for their sake.
    const REPORT_INTERVAL: Duration = Duration::from_millis(100);

    fn write(&self, ledger: Option<Ledger>, reports: Vec<ProgressUpdate>) -> BoxFuture<'static, Written> {
        let engine = self.engine.clone();
        let record = self.record.clone();
        let report = reports.last().map(ProgressUpdate::to_report);
        Box::pin(async move {
            let now = engine.now();
            let epoch = record.execution.epoch;
            let updated = match (ledger, report) {
                (Some(ledger), report) => {
                    engine
                        .persist(&record, move |r| r.journaled(epoch, now, &ledger, report.as_ref()))
                        .await
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
                Err(error) => {
                    tracing::error!(error = %error_chain(&error), "the execution's progress cannot be stored; it is given up");
                    Written::Fenced
                }
            }
        })
    }
}

/// How an execution leaves its record.
enum Outcome {
    Completed(CallToolResult),
    Failed { error: ErrorData, message: String },
}

impl Outcome {
    fn failed(error: ErrorData) -> Self {
        let message = error.message.to_string();
        Self::Failed { error, message }
    }

    fn internal(message: impl Into<String>) -> Self {
        Self::Failed {
            error: ErrorData::internal_error(INTERNAL, None),
            message: message.into(),
        }
    }
}

impl Engine {
    /// Runs the execution that `record` was stored for.
    pub(super) async fn execute(&self, record: &Arc<TaskRecord>, token: CancellationToken) {
        let span = tracing::info_span!(
            "task",
            task_id = %record.task_id,
            tool = %record.tool,
            execution = record.execution.epoch,
            traceparent = record.trace.as_ref().map(|trace| &*trace.traceparent),
        );
        async {
            if record.execution.epoch > 1 && !self.is_current(record).await {
                tracing::info!("the task ended before this execution started");
                return;
            }
            tracing::info!("execution started");
            match self.prepare(record) {
                Ok(tool) => self.run(record, &tool, token).await,
                Err(outcome) => self.end(record, outcome, None).await,
            }
        }
        .instrument(span)
        .await;
    }

    /// Whether a resumed execution is still to run. Between the write that resumed the task and this one's being known
    /// here, a cancellation may have come and gone without finding anything to stop.
    async fn is_current(&self, record: &TaskRecord) -> bool {
        match self.inner.store.get(&record.task_id, self.now()).await {
            Ok(present) => present.is_some_and(|present| present.is_owned_by(record.execution.epoch)),
            // It cannot be told now; the execution's writes will tell.
            Err(error) => {
                tracing::debug!(error = %error_chain(&error), "cannot tell whether the task was cancelled meanwhile");
                true
            }
        }
    }

    /// The tool, if this build still has the one the task was created for.
    fn prepare(&self, record: &TaskRecord) -> Result<Arc<RegisteredTool>, Outcome> {
        let changed =
            |detail: String| Outcome::failed(ErrorData::invalid_params(format!("handler changed: {detail}"), None));
        let Some(tool) = self.inner.registry.get(&record.tool) else {
            return Err(changed(format!(
                "this server has no tool {:?} any more; the task cannot go on",
                record.tool
            )));
        };
        if tool.version != record.body_version {
            let name = |version: &Option<Arc<str>>| version.as_deref().unwrap_or("none").to_owned();
            return Err(changed(format!(
                "the task was started by version {} of {:?}, and this server has version {}",
                name(&record.body_version),
                record.tool,
                name(&tool.version),
            )));
        }
        let mut arguments = Arguments::new(record.arguments.decode().unwrap_or_default());
        tool.descriptor.check(&mut arguments);
        if let Some(problem) = arguments.problems().first() {
            return Err(changed(format!(
                "the arguments of the call do not fit {:?} any more: {problem}",
                record.tool
            )));
        }
        Ok(tool.clone())
    }

    async fn run(&self, record: &Arc<TaskRecord>, tool: &Arc<RegisteredTool>, token: CancellationToken) {
        let carrier = Carrier::Task {
            engine: self.clone(),
            id: record.task_id.clone(),
            epoch: record.execution.epoch,
        };
        let run = Run::new(carrier, record.client_capabilities.clone(), &record.ledger, token);
        let invocation = Invocation::new(
            ToolContext::new(run.clone()),
            Caller::of_shared(record.principal.clone()),
            self.inner.states.clone(),
            record.arguments.decode().unwrap_or_default(),
        );
        let body = tool.descriptor.call(invocation);
        let sink = RecordSink {
            engine: self.clone(),
            record: record.clone(),
        };
        let ending = drive(&run, body, &sink, self.expired(record)).await;
        let report = run.last_report();
        let outcome = match ending {
            Ending::Returned(Ok(result)) => Outcome::Completed(result),
            Ending::Returned(Err(error)) => match error.into_outcome() {
                Ok(result) => Outcome::Completed(result),
                Err(error) => Outcome::failed(error),
            },
            Ending::Suspended(suspension) => {
                let (now, epoch) = (self.now(), record.execution.epoch);
                let questions = suspension.open.len();
                let report = report.as_ref().map(ProgressUpdate::to_report);
                let stored = self
                    .persist(record, move |r| r.suspended(epoch, now, &suspension, report.as_ref()))
                    .await;
                match stored {
                    Ok(Some(updated)) if updated.applied => tracing::info!(questions, "task suspended"),
                    // Cancelled, expired or taken over while it ran.
                    Ok(_) => {}
                    Err(error) => given_up(&error),
                }
                return;
            }
            Ending::Diverged(mismatch) => Outcome::failed(report_mismatch(mismatch, record, tool)),
            Ending::Faulted(fault) => {
                tracing::error!(%fault, "the tool's body is wrong");
                Outcome::internal(format!("{INTERNAL}: {fault}"))
            }
            Ending::Panicked(panic) => {
                tracing::error!(panic, "the tool panicked");
                Outcome::internal("The tool failed unexpectedly")
            }
            Ending::Cancelled => return,
            Ending::Expired => {
                let duration_ms = Self::age_ms(record, self.now());
                tracing::info!(duration_ms, "task expired while it ran; it was stopped");
                self.inner.quota.give_back(record);
                return;
            }
            Ending::Fenced => {
                tracing::info!("the task ended or went on elsewhere; this execution was stopped");
                return;
            }
        };
        self.end(record, outcome, report).await;
    }

    /// Writes the end of the task.
    async fn end(&self, record: &Arc<TaskRecord>, outcome: Outcome, report: Option<ProgressUpdate>) {
        let (now, epoch) = (self.now(), record.execution.epoch);
        let report = report.as_ref().map(ProgressUpdate::to_report);
        let outcome = match outcome {
            Outcome::Completed(result) => match Json::of(&result) {
                Ok(json) => Ok(json),
                Err(error) => {
                    tracing::error!(%error, "the tool's result has no JSON form");
                    Err((
                        ErrorData::internal_error(INTERNAL, None),
                        "The tool's result cannot be sent".to_owned(),
                    ))
                }
            },
            Outcome::Failed { error, message } => Err((error, message)),
        };
        let stored = match outcome {
            Ok(result) => {
                self.persist(record, move |r| r.completed(epoch, now, &result, report.as_ref()))
                    .await
            }
            Err((error, message)) => {
                // The three members of an error are a number, text and a `Value`: they have a JSON form.
                let Ok(error) = Json::of(&error) else { return };
                self.persist(record, move |r| r.failed(epoch, now, &error, &message))
                    .await
            }
        };
        match stored {
            Ok(Some(updated)) if updated.applied => self.ended(&updated.record, now),
            // Cancelled, expired or taken over while it ran: what it came to does not count.
            Ok(_) => {}
            Err(error) => given_up(&error),
        }
    }

    /// Writes for the execution of `record`, again and again while the store cannot be reached, until its lease is over.
    async fn persist(
        &self,
        record: &TaskRecord,
        mutation: impl Fn(&TaskRecord) -> Change + Send + Sync + 'static,
    ) -> Result<Option<Updated>, StoreError> {
        self.write(&record.task_id, self.inner.settings.lease, mutation).await
    }

    /// Resolves when the task is past its deadline, wherever that has moved to meanwhile.
    async fn expired(&self, record: &TaskRecord) {
        let mut deadline = record.deadline();
        loop {
            let Some(at) = deadline else {
                return std::future::pending().await;
            };
            // One millisecond more: at the deadline itself the task is still there.
            let wait = at.saturating_since(self.now()) + Duration::from_millis(1);
            tokio::time::sleep(wait).await;
            match self.inner.store.get(&record.task_id, self.now()).await {
                Ok(Some(record)) => deadline = record.deadline(),
                Ok(None) => return,
                // Whether it was extended cannot be told now: the writes of this execution will be refused if not.
                Err(error) => {
                    tracing::warn!(error = %error_chain(&error), "cannot tell whether the task has expired");
                    tokio::time::sleep(self.inner.settings.lease).await;
                }
            }
        }
    }
}

fn report_mismatch(mut mismatch: Mismatch, record: &TaskRecord, tool: &RegisteredTool) -> ErrorData {
    mismatch.schema_changed = record.input_schema.map(|schema| schema != tool.schema_hash);
    tracing::error!(%mismatch, "the tool does not repeat itself");
    ErrorData::invalid_params(mismatch.to_string(), None)
}

fn given_up(error: &StoreError) {
    tracing::error!(
        error = %error_chain(error),
        "the execution's outcome could not be stored within its lease; it is given up"
    );
}
