//! The grace period of a call: its work runs already and is no task yet.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_tasks_core::{Ledger, TaskRecord};
use rmcp::ErrorData;
use rmcp::model::CallToolResult;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::first_write::FirstWrite;
use super::unconfirmed::OnEffect;
use super::{lock, store_failed};
use crate::run::progress::ProgressUpdate;

/// How a call with a grace period was answered.
#[derive(Debug)]
pub(crate) enum GraceAnswer {
    /// The work ended within the period; nothing was stored.
    Result(Box<CallToolResult>),
    /// The work goes on as this task.
    Task(Arc<TaskRecord>),
}

type Answer = Result<GraceAnswer, ErrorData>;

/// The grace period of one call. It is over as soon as the call is answered, at the latest soon after [`due`](Self::due).
pub(crate) struct GracePeriod {
    due: Instant,
    state: Mutex<State>,
    /// Whether the record is stored.
    is_stored: AtomicBool,
}

struct State {
    /// Taken by the answer: once it is gone the work is a task, or over.
    caller: Option<oneshot::Sender<Answer>>,
    /// What was reported before there was a record to write it to.
    report: Option<ProgressUpdate>,
}

/// The call that waits for its answer, with the newest report. It is answered by the one that has this.
pub(crate) struct WaitingCall {
    caller: oneshot::Sender<Answer>,
    pub(crate) report: Option<ProgressUpdate>,
}

impl fmt::Debug for GracePeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GracePeriod")
            .field("due", &self.due)
            .finish_non_exhaustive()
    }
}

impl GracePeriod {
    /// A period that begins now, and what its call waits for.
    pub(crate) fn begin(length: Duration) -> (Self, oneshot::Receiver<Answer>) {
        let (caller, answer) = oneshot::channel();
        let state = Mutex::new(State {
            caller: Some(caller),
            report: None,
        });
        let period = Self {
            due: Instant::now() + length,
            state,
            is_stored: AtomicBool::new(false),
        };
        (period, answer)
    }

    /// When the work becomes a task; `None` once the call is answered.
    pub(crate) fn due(&self) -> Option<Instant> {
        lock(&self.state).caller.is_some().then_some(self.due)
    }

    /// Whether there is a record, which other nodes can see and take over.
    pub(crate) fn is_stored(&self) -> bool {
        self.is_stored.load(Ordering::Acquire)
    }

    /// Keeps the newest report until there is a record.
    pub(crate) fn keep_report(&self, report: Option<ProgressUpdate>) {
        if report.is_some() {
            lock(&self.state).report = report;
        }
    }

    /// Ends the period: hands out the call, if it still waits.
    pub(crate) fn end(&self) -> Option<WaitingCall> {
        let mut state = lock(&self.state);
        let caller = state.caller.take()?;
        let report = state.report.take();
        Some(WaitingCall { caller, report })
    }

    /// Makes the work a task: stores its record, with what the run recorded so far, and answers the call. `false` when the
    /// client went away, or the store fails: the work is to stop, as no client will learn of it.
    pub(crate) async fn become_task(
        &self,
        first_write: &FirstWrite,
        record: &TaskRecord,
        ledger: Ledger,
        report: Option<ProgressUpdate>,
    ) -> bool {
        self.keep_report(report);
        let Some(call) = self.end() else {
            return true;
        };
        let mut record = record.clone();
        record.ledger = ledger;
        // The period may have been longer than what is left of the lease that was taken before it.
        record.execution.lease_until = Some(first_write.records().claim().lease_until);
        if let Some(report) = call.report.as_ref().map(ProgressUpdate::to_report) {
            record.progress = Some(report.progress);
            record.status_message = Some(report.message);
        }
        let is_task = call.answer_with_task(first_write, record).await;
        self.is_stored.store(is_task, Ordering::Release);
        is_task
    }
}

impl WaitingCall {
    /// Answers the call without a task.
    pub(crate) fn answer(self, answer: Answer) {
        // A call that was dropped meanwhile gets no answer.
        let _ = self.caller.send(answer);
    }

    /// Stores `record` and answers the call with the task. `false` when there is none in the end.
    pub(crate) async fn answer_with_task(self, first_write: &FirstWrite, record: TaskRecord) -> bool {
        if self.caller.is_closed() {
            first_write.not_needed(&record);
            return false;
        }
        match first_write.store(record, OnEffect::Remove).await {
            Ok(record) => {
                let is_told = self.caller.send(Ok(GraceAnswer::Task(record.clone()))).is_ok();
                if !is_told {
                    // The client went away meanwhile: as if it had a moment before.
                    first_write.take_back(&record);
                }
                is_told
            }
            Err(error) => {
                let _ = self.caller.send(Err(store_failed(&error)));
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call is answered once, with the newest report that was kept for it.
    #[tokio::test(start_paused = true)]
    async fn a_call_is_answered_once() {
        let (period, answer) = GracePeriod::begin(Duration::from_secs(1));
        assert_eq!(period.due(), Some(Instant::now() + Duration::from_secs(1)));
        for progress in [1.0, 2.0] {
            period.keep_report(Some(ProgressUpdate::new(progress)));
            period.keep_report(None);
        }
        let call = period.end().expect("it waits");
        assert_eq!(call.report, Some(ProgressUpdate::new(2.0)));
        assert!(period.due().is_none() && period.end().is_none());
        call.answer(Ok(GraceAnswer::Result(Box::default())));
        assert!(matches!(answer.await, Ok(Ok(GraceAnswer::Result(_)))));
    }
}
