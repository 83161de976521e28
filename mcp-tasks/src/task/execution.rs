//! One execution of a task: the body is run from the top against the ledger, and its end is written.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use mcp_tasks_core::{Change, Json, Ledger, StoreError, Suspension, TaskId, TaskRecord, Timestamp, error_chain};
use rmcp::ErrorData;
use rmcp::model::CallToolResult;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::Engine;
use super::birth::{Birth, Started};
use super::places::Place;
use super::record_sink::RecordSink;
use crate::run::driver::{Ending, drive};
use crate::run::errors::{internal_error, report_mismatch};
use crate::run::progress::ProgressUpdate;
use crate::run::{Carrier, Deferral, Run, RunStart};
use crate::tool::argument::Arguments;
use crate::tool::caller::Caller;
use crate::tool::error::ToolError;
use crate::tool::invocation::Invocation;
use crate::tool::registry::RegisteredTool;

/// The words for a task whose record the store refuses, most often because it has grown too large for it.
const UNKEPT: &str = "The task store refuses to keep what the tool came to";

/// The carrier of an execution's run.
#[derive(Debug)]
pub(crate) struct InTask {
    pub(crate) engine: Engine,
    pub(crate) id: TaskId,
    pub(crate) epoch: u64,
}

impl Carrier for InTask {
    fn is_task(&self) -> bool {
        true
    }

    fn extend_ttl(&self, ttl: Duration) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(self.engine.extend_ttl(&self.id, self.epoch, ttl))
    }
}

/// How an execution leaves its record.
enum Outcome {
    Completed(Box<CallToolResult>),
    Failed { error: Box<ErrorData>, message: String },
}

/// How an execution ended.
enum Ended {
    Outcome(Outcome),
    Suspended(Suspension),
    /// The body waits until then.
    Asleep(Ledger, Timestamp),
    /// The execution's token fired: its client calls the task off, or the node stops.
    Cancelled,
    /// There is nothing to write.
    Stopped,
}

impl Outcome {
    fn failed(error: ErrorData) -> Self {
        let message = error.message.to_string();
        Self::Failed {
            error: Box::new(error),
            message,
        }
    }

    /// What is the server's own fault, in words that may leave it; the log has the rest.
    fn internal(words: impl Into<String>) -> Self {
        Self::failed(internal_error(words.into()))
    }
}

impl Engine {
    /// Runs the execution that `record` was stored for, or will be, if `birth` says so.
    pub(crate) async fn execute(
        &self,
        record: &Arc<TaskRecord>,
        token: CancellationToken,
        birth: Option<&Arc<Birth>>,
        place: Option<Place>,
    ) {
        let span = tracing::info_span!(
            "task",
            task_id = %record.task_id,
            tool = %record.tool,
            execution = record.execution.epoch,
            traceparent = record.trace.as_ref().map(|trace| &*trace.traceparent),
        );
        async {
            // One watch for the wait and the work, so that the lease is renewed throughout. It is dropped before anything else
            // is written: left alone in the middle of a renewal it would keep the connection or the turn that it holds.
            let mut watch = Box::pin(self.watch(record, birth.map(|birth| &**birth)));
            let _place = match self.begin(record, place, &token, watch.as_mut()).await {
                Ok(place) => place,
                Err(ending) => {
                    drop(watch);
                    return match ending {
                        Ending::Expired => self.inner.quota.give_back(record),
                        Ending::Cancelled => self.release(record, false).await,
                        _ => {}
                    };
                }
            };
            tracing::info!("execution started");
            match self.prepare(record) {
                Ok(tool) => self.run(record, &tool, token, birth, watch).await,
                Err(outcome) => {
                    drop(watch);
                    self.end(record, outcome, None).await;
                }
            }
        }
        .instrument(span)
        .await;
    }

    /// Waits for the execution's place, if it has none yet, and looks whether it is still to run.
    ///
    /// # Errors
    /// How the execution ends that is not to begin any more.
    async fn begin(
        &self,
        record: &TaskRecord,
        place: Option<Place>,
        token: &CancellationToken,
        mut watch: Pin<&mut (impl Future<Output = Ending> + Send)>,
    ) -> Result<Place, Ending> {
        if token.is_cancelled() {
            return Err(Ending::Cancelled);
        }
        let place = match place.or_else(|| self.inner.places.try_take()) {
            Some(place) => place,
            None => {
                tracing::info!("the execution waits for a place: as many run as this server may");
                tokio::select! {
                    biased;
                    () = token.cancelled() => return Err(Ending::Cancelled),
                    ending = watch.as_mut() => return Err(ending),
                    place = self.inner.places.wait() => place,
                }
            }
        };
        // What is not stored yet, or was just created here, nobody else knows.
        let is_current = record.version <= 1
            || tokio::select! {
                biased;
                ending = watch => return Err(ending),
                is_current = self.is_current(record) => is_current,
            };
        if !is_current {
            tracing::info!("the task ended before this execution started");
            return Err(Ending::Fenced);
        }
        Ok(place)
    }

    /// Whether an execution is still to run. Between the write that claimed the task and this one's being known
    /// here, a cancellation may have come and gone without finding anything to stop.
    async fn is_current(&self, record: &TaskRecord) -> bool {
        match self.read(&record.task_id).await {
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

    async fn run(
        &self,
        record: &Arc<TaskRecord>,
        tool: &Arc<RegisteredTool>,
        token: CancellationToken,
        birth: Option<&Arc<Birth>>,
        watch: impl Future<Output = Ending> + Send,
    ) {
        let run = Run::new(RunStart {
            carrier: Box::new(InTask {
                engine: self.clone(),
                id: record.task_id.clone(),
                epoch: record.execution.epoch,
            }),
            id: record.task_id.clone(),
            capabilities: record.client_capabilities.clone(),
            ledger: &record.ledger,
            deferral: if tool.descriptor.defer() {
                Deferral::Done
            } else {
                Deferral::Refused
            },
            clock: self.inner.clock.clone(),
            token,
            progress: record.progress,
        });
        let invocation = Invocation::new(
            run.clone(),
            Caller::of_shared(record.principal.clone()),
            self.inner.states.clone(),
            record.arguments.decode().unwrap_or_default(),
        );
        let body = tool.descriptor.call(invocation);
        let sink = RecordSink {
            engine: self.clone(),
            record: record.clone(),
            birth: birth.cloned(),
        };
        let ending = drive(&run, body, &sink, watch).await;
        let report = run.last_report();
        let ended = match ending {
            Ending::Returned(Ok(result)) => Ended::Outcome(Outcome::Completed(Box::new(result))),
            Ending::Returned(Err(error)) => Ended::Outcome(match error.into_outcome() {
                Ok(result) => Outcome::Completed(Box::new(result)),
                Err(error) => Outcome::failed(error),
            }),
            Ending::Suspended(suspension) => Ended::Suspended(suspension),
            Ending::Asleep(ledger, wake) => Ended::Asleep(ledger, wake),
            Ending::Diverged(mismatch) => {
                Ended::Outcome(Outcome::failed(report_mismatch(mismatch, record.input_schema, tool)))
            }
            Ending::Faulted(fault) => {
                tracing::error!(%fault, "the tool's body is wrong");
                Ended::Outcome(Outcome::internal(format!("Internal error: {fault}")))
            }
            Ending::Panicked(panic) => {
                tracing::error!(panic, "the tool panicked");
                Ended::Outcome(Outcome::internal("The tool failed unexpectedly"))
            }
            Ending::Cancelled => Ended::Cancelled,
            Ending::Expired => {
                let duration_ms = Self::age_ms(record, self.now());
                tracing::info!(duration_ms, "task expired while it ran; it was stopped");
                self.inner.quota.give_back(record);
                Ended::Stopped
            }
            Ending::Refused => Ended::Outcome(Outcome::internal(UNKEPT)),
            Ending::Fenced | Ending::Deferred(_) => {
                tracing::info!("the task ended or went on elsewhere; this execution was stopped");
                Ended::Stopped
            }
        };
        if let Some((tell, kept)) = birth.and_then(|birth| birth.take()) {
            return self.end_unborn(record, ended, tell, report.or(kept)).await;
        }
        match ended {
            Ended::Outcome(outcome) => self.end(record, outcome, report).await,
            Ended::Suspended(suspension) => self.suspend(record, suspension, report).await,
            Ended::Asleep(ledger, wake) => self.put_to_sleep(record, ledger, wake, report).await,
            Ended::Cancelled => self.release(record, true).await,
            Ended::Stopped => {}
        }
    }

    /// The work ended before it was a task: its result is the answer to the call, and only a question makes it one.
    async fn end_unborn(
        &self,
        record: &TaskRecord,
        ended: Ended,
        tell: tokio::sync::oneshot::Sender<Result<Started, ErrorData>>,
        report: Option<ProgressUpdate>,
    ) {
        let answer = match ended {
            Ended::Suspended(suspension) => {
                let report = report.as_ref().map(ProgressUpdate::to_report);
                let epoch = record.execution.epoch;
                let suspended = record.suspended(epoch, self.now(), &suspension, report.as_ref());
                if let Change::Write(suspended) = suspended {
                    self.deliver(tell, *suspended).await;
                }
                return;
            }
            Ended::Outcome(Outcome::Completed(result)) => Ok(Started::Result(result)),
            Ended::Outcome(Outcome::Failed { error, .. }) => Err(*error),
            // Only a task is put away.
            Ended::Cancelled | Ended::Stopped | Ended::Asleep(..) => {
                Err(ErrorData::internal_error("The work was stopped", None))
            }
        };
        self.inner.quota.give_back(record);
        // Nobody may be waiting any more; then nobody is told.
        let _ = tell.send(answer);
    }

    /// Writes the questions of the task.
    async fn suspend(&self, record: &TaskRecord, suspension: Suspension, report: Option<ProgressUpdate>) {
        let (now, epoch) = (self.now(), record.execution.epoch);
        let questions = suspension.open.len();
        let report = report.as_ref().map(ProgressUpdate::to_report);
        let mutation = move |r: &TaskRecord| r.suspended(epoch, now, &suspension, report.as_ref());
        match self.persist(record, mutation).await {
            Ok(Some(updated)) if updated.applied => tracing::info!(questions, "task suspended"),
            // Cancelled, expired or taken over while it ran.
            Ok(_) => {}
            Err(error @ StoreError::Refused { .. }) => self.fail_unkept(record, &error).await,
            Err(error) => given_up(&error),
        }
    }

    /// Writes the end of the task.
    async fn end(&self, record: &Arc<TaskRecord>, outcome: Outcome, report: Option<ProgressUpdate>) {
        let (now, epoch) = (self.now(), record.execution.epoch);
        let report = report.as_ref().map(ProgressUpdate::to_report);
        let outcome = match outcome {
            // Read back as a poll will: what cannot be shown must not be stored as a result.
            Outcome::Completed(result) => match Json::of(&result).and_then(|json| {
                json.decode::<rmcp::model::JsonObject>()?;
                Ok(json)
            }) {
                Ok(json) => Ok(json),
                Err(error) => {
                    tracing::error!(%error, "the tool's result has no JSON form");
                    let words = "The tool's result cannot be sent";
                    Err((Box::new(internal_error(words)), words.to_owned()))
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
            Err(error @ StoreError::Refused { .. }) => self.fail_unkept(record, &error).await,
            Err(error) => given_up(&error),
        }
    }

    /// Fails a task whose outcome or questions the store refuses. Nobody is to take it over: the work would be done again
    /// for an outcome that is refused again, and its client would be told of a lost server.
    pub(crate) async fn fail_unkept(&self, record: &TaskRecord, refusal: &StoreError) {
        tracing::error!(error = %error_chain(refusal), "the execution's outcome cannot be stored; its task fails");
        let Ok(error) = Json::of(&internal_error(UNKEPT)) else {
            return;
        };
        let (now, epoch) = (self.now(), record.execution.epoch);
        let stored = self
            .persist(record, move |r| r.failed(epoch, now, &error, UNKEPT))
            .await;
        match stored {
            Ok(Some(updated)) if updated.applied => self.ended(&updated.record, now),
            Ok(_) => {}
            Err(error) => given_up(&error),
        }
    }
}

pub(crate) fn given_up(error: &StoreError) {
    tracing::error!(
        error = %error_chain(error),
        "the execution's outcome could not be stored within its lease; it is given up"
    );
}
