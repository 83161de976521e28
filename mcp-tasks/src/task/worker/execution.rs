//! One execution of a task: the body is run from the top against the ledger, and its end is written.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use mcp_tasks_core::{Change, Suspension, TaskRecord};
use rmcp::ErrorData;
use tracing::Instrument;

use super::record_sink::RecordSink;
use super::{Worker, WorkerParts};
use crate::run::driver::drive;
use crate::run::ending::Ending;
use crate::run::errors::report_mismatch;
use crate::run::progress::ProgressUpdate;
use crate::run::{Deferral, Run, RunStart};
use crate::task::admission::{Slot, age_ms};
use crate::task::executions::Registration;
use crate::task::extend::InTask;
use crate::task::grace::{GraceAnswer, GracePeriod, WaitingCall};
use crate::tool::argument::Arguments;
use crate::tool::caller::Caller;
use crate::tool::invocation::Invocation;
use crate::tool::registry::RegisteredTool;
use outcome::Outcome;

mod outcome;

/// An execution that is registered on this node.
pub(super) struct Execution {
    worker: Worker,
    pub(super) record: Arc<TaskRecord>,
    registration: Registration,
    /// Of a call whose work is no task yet.
    grace: Option<Arc<GracePeriod>>,
}

/// How the run of an execution ended.
enum Ended {
    Outcome(Outcome),
    /// The execution's token fired: the task was cancelled, or the node stops.
    Cancelled,
    /// There is nothing to write.
    Stopped,
}

impl Execution {
    pub(super) const fn new(
        worker: Worker,
        record: Arc<TaskRecord>,
        registration: Registration,
        grace: Option<Arc<GracePeriod>>,
    ) -> Self {
        Self {
            worker,
            record,
            registration,
            grace,
        }
    }

    pub(super) fn parts(&self) -> &WorkerParts {
        &self.worker.parts
    }

    /// Runs the execution to its end, in `slot` or the next that is free.
    pub(super) async fn run(self, slot: Option<Slot>) {
        let record = &self.record;
        let span = tracing::info_span!(
            "task",
            task_id = %record.task_id,
            tool = %record.tool,
            execution = record.execution.epoch,
            traceparent = record.trace.as_ref().map(|trace| &*trace.traceparent),
        );
        self.run_in_span(slot).instrument(span).await;
    }

    async fn run_in_span(&self, slot: Option<Slot>) {
        let (parts, record) = (self.parts(), &self.record);
        // The lease is held through the wait and the work. This is dropped before anything else is written: left alone in the
        // middle of a renewal it would keep the connection or the turn that it holds.
        let mut lease = Box::pin(parts.leases.hold(record, &self.registration, self.grace.as_deref()));
        let _slot = match self.begin(slot, lease.as_mut()).await {
            Ok(slot) => slot,
            Err(ending) => {
                drop(lease);
                return match ending {
                    Ending::Expired => parts.admission.quota.release(record),
                    Ending::Cancelled => parts.leases.release(record, false).await,
                    _ => {}
                };
            }
        };
        tracing::info!("execution started");
        match self.tool() {
            Ok(tool) => self.run_body(&tool, lease).await,
            Err(outcome) => {
                drop(lease);
                self.write_outcome(outcome, None).await;
            }
        }
    }

    /// Waits for the execution's slot, if it has none yet.
    ///
    /// # Errors
    /// How the execution ends that is not to begin any more.
    async fn begin(
        &self,
        slot: Option<Slot>,
        lease: Pin<&mut (impl Future<Output = Ending> + Send)>,
    ) -> Result<Slot, Ending> {
        let token = &self.registration.token;
        if token.is_cancelled() {
            return Err(Ending::Cancelled);
        }
        let slots = &self.parts().admission.slots;
        if let Some(slot) = slot.or_else(|| slots.try_take()) {
            return Ok(slot);
        }
        tracing::info!("the execution waits for a slot: as many run as this server may");
        tokio::select! {
            biased;
            () = token.cancelled() => Err(Ending::Cancelled),
            ending = lease => Err(ending),
            slot = slots.next_free() => Ok(slot),
        }
    }

    /// The tool, if this build still has the one the task was created for.
    fn tool(&self) -> Result<Arc<RegisteredTool>, Outcome> {
        let record = &self.record;
        let changed =
            |detail: String| Outcome::failed(ErrorData::invalid_params(format!("handler changed: {detail}"), None));
        let Some(tool) = self.parts().registry.get(&record.tool) else {
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
        (tool.descriptor.check)(&mut arguments);
        if let Some(problem) = arguments.problems().first() {
            return Err(changed(format!(
                "the arguments of the call do not fit {:?} any more: {problem}",
                record.tool
            )));
        }
        Ok(tool.clone())
    }

    async fn run_body(&self, tool: &Arc<RegisteredTool>, lease: impl Future<Output = Ending> + Send) {
        let (parts, record) = (self.parts(), &self.record);
        let run = Run::new(RunStart {
            carrier: Box::new(InTask {
                records: parts.records.clone(),
                admission: parts.admission.clone(),
                id: record.task_id.clone(),
                epoch: record.execution.epoch,
            }),
            id: record.task_id.clone(),
            capabilities: record.client_capabilities.clone(),
            ledger: &record.ledger,
            deferral: if tool.descriptor.defer {
                Deferral::Done
            } else {
                Deferral::Refused
            },
            clock: parts.records.clock().clone(),
            token: self.registration.token.clone(),
            progress: record.progress,
        });
        let invocation = Invocation::new(
            run.clone(),
            Caller::of_shared(record.principal.clone()),
            parts.states.clone(),
            record.arguments.decode().unwrap_or_default(),
        );
        let body = (tool.descriptor.call)(invocation);
        let sink = RecordSink {
            records: parts.records.clone(),
            first_write: parts.first_write.clone(),
            record: record.clone(),
            grace: self.grace.clone(),
        };
        let ending = drive(&run, body, &sink, lease).await;
        let report = run.last_report();
        let ended = self.ended(ending, tool);
        if let Some(call) = self.grace.as_ref().and_then(|grace| grace.end()) {
            return self.answer_call(ended, call, report).await;
        }
        match ended {
            Ended::Outcome(outcome) => self.write_outcome(outcome, report).await,
            Ended::Cancelled => parts.leases.release(record, true).await,
            Ended::Stopped => {}
        }
    }

    fn ended(&self, ending: Ending, tool: &RegisteredTool) -> Ended {
        let record = &self.record;
        Ended::Outcome(match ending {
            Ending::Returned(Ok(result)) => Outcome::Completed(Box::new(result)),
            Ending::Returned(Err(error)) => match error.into_outcome() {
                Ok(result) => Outcome::Completed(Box::new(result)),
                Err(error) => Outcome::failed(error),
            },
            Ending::Suspended(suspension) => Outcome::Suspended(suspension),
            Ending::Asleep(ledger, wake) => Outcome::Asleep(ledger, wake),
            Ending::Diverged(mismatch) => Outcome::failed(report_mismatch(mismatch, record.input_schema, tool)),
            Ending::Faulted(fault) => {
                tracing::error!(%fault, "the tool's body is wrong");
                Outcome::internal(format!("Internal error: {fault}"))
            }
            Ending::Panicked(panic) => {
                tracing::error!(panic, "the tool panicked");
                Outcome::internal("The tool failed unexpectedly")
            }
            Ending::Refused => Outcome::refused_by_store(),
            Ending::Cancelled => return Ended::Cancelled,
            Ending::Expired => {
                let duration_ms = age_ms(record, self.parts().records.now());
                tracing::info!(duration_ms, "task expired while it ran; it was stopped");
                self.parts().admission.quota.release(record);
                return Ended::Stopped;
            }
            Ending::Fenced | Ending::Deferred(_) => {
                tracing::info!("the task ended or went on elsewhere; this execution was stopped");
                return Ended::Stopped;
            }
        })
    }

    /// The work ended within its grace period: its result is the answer to the call, and only a question makes it a task.
    async fn answer_call(&self, ended: Ended, call: WaitingCall, report: Option<ProgressUpdate>) {
        let answer = match ended {
            Ended::Outcome(Outcome::Suspended(suspension)) => {
                return self.answer_with_questions(&suspension, call, report).await;
            }
            Ended::Outcome(Outcome::Completed(result)) => Ok(GraceAnswer::Result(result)),
            Ended::Outcome(Outcome::Failed { error, .. }) => Err(*error),
            // Only a task is put away.
            Ended::Outcome(Outcome::Asleep(..)) | Ended::Cancelled | Ended::Stopped => {
                Err(ErrorData::internal_error("The work was stopped", None))
            }
        };
        self.parts().admission.quota.release(&self.record);
        call.answer(answer);
    }

    async fn answer_with_questions(&self, suspension: &Suspension, call: WaitingCall, report: Option<ProgressUpdate>) {
        let (parts, record) = (self.parts(), &self.record);
        let report = report.as_ref().or(call.report.as_ref()).map(ProgressUpdate::to_report);
        let epoch = record.execution.epoch;
        let suspended = record.suspended(epoch, parts.records.now(), suspension, report.as_ref());
        if let Change::Write(suspended) = suspended {
            call.answer_with_task(&parts.first_write, *suspended).await;
        }
    }
}
