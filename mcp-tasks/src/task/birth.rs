//! Grace: work that runs already and is no task yet.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp_tasks_core::{Ledger, TaskRecord};
use rmcp::ErrorData;
use rmcp::model::CallToolResult;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::doubt::{Doubt, Remedy};
use super::{Engine, NewTask, lock, store_failed};
use crate::run::errors::cancelled;
use crate::run::progress::ProgressUpdate;

/// How a call with grace was answered.
#[derive(Debug)]
pub(crate) enum Started {
    /// The work ended within the grace; nothing was stored.
    Result(Box<CallToolResult>),
    /// The work goes on as this task.
    Task(Arc<TaskRecord>),
}

type Told = oneshot::Sender<Result<Started, ErrorData>>;

/// The call that waits for its answer while the work is no task yet.
pub(crate) struct Birth {
    due: Instant,
    state: Mutex<State>,
    /// Whether the record is stored.
    born: AtomicBool,
}

struct State {
    /// Taken by the answer: with it the call is answered, and what runs on is a task or over.
    tell: Option<Told>,
    /// What was reported before there was a record to write it to.
    report: Option<ProgressUpdate>,
}

impl fmt::Debug for Birth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Birth").field("due", &self.due).finish_non_exhaustive()
    }
}

impl Birth {
    fn new(grace: Duration, tell: Told) -> Self {
        let state = Mutex::new(State {
            tell: Some(tell),
            report: None,
        });
        Self {
            due: Instant::now() + grace,
            state,
            born: AtomicBool::new(false),
        }
    }

    /// When the work becomes a task; `None` once it is one.
    pub(crate) fn due(&self) -> Option<Instant> {
        lock(&self.state).tell.is_some().then_some(self.due)
    }

    /// Whether there is a record that somebody could look at or take over.
    pub(crate) fn is_born(&self) -> bool {
        self.born.load(Ordering::Acquire)
    }

    /// Keeps the newest report until there is a record.
    pub(crate) fn keep(&self, report: Option<ProgressUpdate>) {
        if report.is_some() {
            lock(&self.state).report = report;
        }
    }

    /// The call that waits, if it still does: whoever takes it answers it.
    pub(crate) fn take(&self) -> Option<(Told, Option<ProgressUpdate>)> {
        let mut state = lock(&self.state);
        let tell = state.tell.take()?;
        Some((tell, state.report.take()))
    }
}

impl Engine {
    /// Starts the work at once. If it ends within `grace` its result is the answer and nothing is stored; otherwise, and
    /// when it asks a question, the same running work becomes a task.
    ///
    /// When `gone` fires, or this future is dropped, before there is a task, nobody would learn of it: the work stops.
    ///
    /// # Errors
    /// As [`create`](Self::create), and the JSON-RPC error of work that ended within the grace.
    pub(crate) async fn start_with_grace(
        &self,
        new: NewTask<'_>,
        grace: Duration,
        gone: CancellationToken,
    ) -> Result<Started, ErrorData> {
        let (record, place) = self.admit(&new)?;
        let record = Arc::new(record);
        let (tell, told) = oneshot::channel();
        let birth = Arc::new(Birth::new(grace, tell));
        self.spawn_execution(record.clone(), Some(birth.clone()), place);
        let _abandon = Abandon {
            engine: self,
            birth,
            record,
        };
        tokio::select! {
            biased;
            told = told => {
                told.unwrap_or_else(|_| Err(ErrorData::internal_error("The work stopped without a result", None)))
            }
            () = gone.cancelled() => Err(cancelled()),
        }
    }

    /// Makes the work a task: stores its record, with what the run recorded so far, and answers the call. `false` when the
    /// client went away, or the store fails: the work is to stop, as nobody will learn of it.
    pub(crate) async fn mint_running(
        &self,
        birth: &Birth,
        record: &TaskRecord,
        ledger: Ledger,
        report: Option<ProgressUpdate>,
    ) -> bool {
        birth.keep(report);
        let Some((tell, report)) = birth.take() else {
            return true;
        };
        let mut record = record.clone();
        record.ledger = ledger;
        // The grace may have been longer than what is left of the lease that was taken before it.
        record.execution.lease_until = Some(self.claim().lease_until);
        if let Some(report) = report.map(|report| report.to_report()) {
            record.progress = Some(report.progress);
            record.status_message = Some(report.message);
        }
        let delivered = self.deliver(tell, record).await;
        birth.born.store(delivered, Ordering::Release);
        delivered
    }

    /// Stores `record` and tells the call of it.
    pub(crate) async fn deliver(&self, tell: Told, record: TaskRecord) -> bool {
        if tell.is_closed() {
            self.inner.quota.give_back(&record);
            return false;
        }
        match self.mint(record, Remedy::Remove).await {
            Ok(record) => {
                let is_told = tell.send(Ok(Started::Task(record.clone()))).is_ok();
                if !is_told {
                    // The client went away meanwhile: as if it had a moment before.
                    self.inner.quota.give_back(&record);
                    drop(Doubt::of(self, &record, Remedy::Remove));
                }
                is_told
            }
            Err(error) => {
                let _ = tell.send(Err(store_failed(&error)));
                false
            }
        }
    }
}

/// Stops work that is no task yet, once the call no longer waits for it.
struct Abandon<'a> {
    engine: &'a Engine,
    birth: Arc<Birth>,
    record: Arc<TaskRecord>,
}

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        // Whoever answered the call has taken it, and what was made a task stays one.
        if self.birth.take().is_none() {
            return;
        }
        self.engine.inner.quota.give_back(&self.record);
        if let Some(running) = lock(&self.engine.inner.running).get(&self.record.task_id) {
            running.token.cancel();
        }
    }
}
