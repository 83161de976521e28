//! What an execution came to, and how it is written to its record.

use mcp_tasks_core::{Change, Json, Ledger, StoreError, Suspension, TaskRecord, Timestamp, Updated, error_chain};
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, JsonObject};

use super::Execution;
use crate::run::errors::internal_error;
use crate::run::progress::ProgressUpdate;

/// The words for a task whose record the store refuses, most often because it has grown too large for it.
const REFUSED: &str = "The task store refuses to keep what the tool came to";

/// How an execution leaves its record.
pub(super) enum Outcome {
    Completed(Box<CallToolResult>),
    Failed {
        error: Box<ErrorData>,
        message: String,
    },
    /// The task waits for answers.
    Suspended(Suspension),
    /// The body waits until then.
    Asleep(Ledger, Timestamp),
}

impl Outcome {
    pub(super) fn failed(error: ErrorData) -> Self {
        let message = error.message.to_string();
        Self::Failed {
            error: Box::new(error),
            message,
        }
    }

    /// What is the server's own fault, in words that may leave it; the log has the rest.
    pub(super) fn internal(words: impl Into<String>) -> Self {
        Self::failed(internal_error(words.into()))
    }

    /// The store refuses the record.
    pub(super) fn refused_by_store() -> Self {
        Self::internal(REFUSED)
    }
}

impl Execution {
    /// Writes the outcome, with the last report. An outcome that the store refuses fails the task: left alone it would be
    /// taken over by another node, the work done again for an outcome that is refused again, and its client told of a lost
    /// server.
    pub(super) async fn write_outcome(&self, outcome: Outcome, report: Option<ProgressUpdate>) {
        if let Err(refusal) = self.try_write_outcome(outcome, report).await {
            tracing::error!(error = %error_chain(&refusal), "the execution's outcome cannot be stored; its task fails");
            let failed = self.try_write_outcome(Outcome::refused_by_store(), None).await;
            if let Err(error) = failed {
                given_up(&error);
            }
        }
    }

    /// # Errors
    /// The store's refusal.
    async fn try_write_outcome(&self, outcome: Outcome, report: Option<ProgressUpdate>) -> Result<(), StoreError> {
        let (now, epoch) = (self.parts().records.now(), self.record.execution.epoch);
        let report = report.as_ref().map(ProgressUpdate::to_report);
        match outcome {
            Outcome::Completed(result) => match showable(&result) {
                Ok(result) => {
                    let ended = self.write(move |r| r.completed(epoch, now, &result, report.as_ref()));
                    self.log_end(ended.await?, now);
                }
                Err(error) => {
                    tracing::error!(%error, "the tool's result has no JSON form");
                    let failed = Outcome::internal("The tool's result cannot be sent");
                    return Box::pin(self.try_write_outcome(failed, None)).await;
                }
            },
            Outcome::Failed { error, message } => {
                // The three members of an error are a number, text and a `Value`: they have a JSON form.
                let Ok(error) = Json::of(&error) else { return Ok(()) };
                let ended = self.write(move |r| r.failed(epoch, now, &error, &message));
                self.log_end(ended.await?, now);
            }
            Outcome::Suspended(suspension) => {
                let questions = suspension.open.len();
                let suspended = self.write(move |r| r.suspended(epoch, now, &suspension, report.as_ref()));
                if suspended.await?.is_some() {
                    tracing::info!(questions, "task suspended");
                }
            }
            Outcome::Asleep(ledger, wake) => {
                let asleep = self.write(move |r| r.slept(epoch, now, wake, &ledger, report.as_ref()));
                if let Some(updated) = asleep.await? {
                    tracing::info!(until = %wake, "task sleeps");
                    // One that expires before needs no waking.
                    if updated.record.deadline().is_none_or(|deadline| wake <= deadline) {
                        self.parts().wake_queue.wake_at(wake, &self.record.task_id);
                    }
                }
            }
        }
        Ok(())
    }

    /// One write; `None` where it changed nothing, as the task was cancelled, has expired or was taken over while it ran, or
    /// as the store was out of reach until the lease was over.
    ///
    /// # Errors
    /// The store's refusal.
    async fn write(
        &self,
        mutation: impl Fn(&TaskRecord) -> Change + Send + Sync + 'static,
    ) -> Result<Option<Updated>, StoreError> {
        let id = &self.record.task_id;
        match self.parts().records.write_for_execution(id, mutation).await {
            Ok(updated) => Ok(updated.filter(|updated| updated.applied)),
            Err(error @ StoreError::Refused { .. }) => Err(error),
            Err(error) => {
                given_up(&error);
                Ok(None)
            }
        }
    }

    fn log_end(&self, ended: Option<Updated>, now: Timestamp) {
        if let Some(updated) = ended {
            self.parts().admission.task_ended(&updated.record, now);
        }
    }
}

/// The JSON form of a result, read back as a poll will: what cannot be shown must not be stored as a result.
fn showable(result: &CallToolResult) -> Result<Json, serde_json::Error> {
    let json = Json::of(result)?;
    json.decode::<JsonObject>()?;
    Ok(json)
}

fn given_up(error: &StoreError) {
    tracing::error!(
        error = %error_chain(error),
        "the execution's outcome could not be stored within its lease; it is given up"
    );
}
