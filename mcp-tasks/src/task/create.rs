//! Creating tasks: at once, or when the grace period of their call is over.

use std::sync::Arc;
use std::time::Duration;

use mcp_tasks_core::{Json, Ledger, StoreError, TaskId, TaskRecord};
use rmcp::ErrorData;
use tokio_util::sync::CancellationToken;

use super::admission::Slot;
use super::grace::{GraceAnswer, GracePeriod};
use super::unconfirmed::OnEffect;
use super::{TaskEngine, store_failed, unknown_task};
use crate::run::errors::cancelled;
use crate::run::id::new_id;
use crate::run::origin::RequestOrigin;
use crate::tool::registry::RegisteredTool;

/// A call that becomes a task: its arguments were checked, its guard passed.
#[derive(Debug)]
pub(crate) struct NewTask<'a> {
    pub(crate) tool: &'a Arc<RegisteredTool>,
    pub(crate) arguments: Json,
    pub(crate) client: RequestOrigin,
    /// The id and what the call was told before it became a task.
    pub(crate) before: Option<(TaskId, Ledger)>,
}

/// How often an id that exists already is answered with another. With 128 random bits once is never needed; a second
/// collision means that the system's generator is broken.
const ID_ATTEMPTS: usize = 3;

impl TaskEngine {
    /// Stores a new task and starts its first execution.
    ///
    /// # Errors
    /// A quota that is used up, a store that fails, a node that is stopping. Nothing was stored then.
    pub(crate) async fn create(&self, new: NewTask<'_>) -> Result<Arc<TaskRecord>, ErrorData> {
        self.start_background();
        if let Some((id, _)) = &new.before {
            // The last round of one call, sent twice: there is the one task already, and it counts once.
            match self.get(id, new.client.caller.principal()).await {
                Err(error) if error == unknown_task() => {}
                known => return known,
            }
        }
        let mut left = ID_ATTEMPTS;
        loop {
            left -= 1;
            let (record, slot) = self.admit(&new)?;
            // Of an id that was known before, the client may have been told the task by another node: it goes on, and may be
            // cancelled before its execution is registered here.
            let pending = || self.executions.pending_start(&record.task_id);
            let (on_effect, _pending) = match &new.before {
                Some(_) => (self.worker.start_on_effect(pending()), Some(pending())),
                None => (OnEffect::Remove, None),
            };
            match self.first_write.store(record.clone(), on_effect).await {
                Ok(record) => {
                    match slot {
                        Some(_) => self.worker.start(record.clone(), None, slot),
                        None => self.claims.push(&record.task_id),
                    }
                    return Ok(record);
                }
                Err(StoreError::AlreadyExists { id }) if new.before.is_some() => {
                    // Sent twice at the same time.
                    let known = self.get(&id, new.client.caller.principal()).await?;
                    if known.status.is_terminal() {
                        self.admission.quota.release(&known);
                    }
                    return Ok(known);
                }
                Err(error) => {
                    self.admission.quota.release(&record);
                    if left == 0 || !matches!(error, StoreError::AlreadyExists { .. }) {
                        return Err(store_failed(&error));
                    }
                }
            }
        }
    }

    /// Starts the work at once. If it ends within the `length` of the grace period its result is the answer and nothing is
    /// stored; otherwise, and when it asks a question, the same running work becomes a task.
    ///
    /// When `gone` fires, or this future is dropped, before there is a task, no client would learn of it: the work stops.
    ///
    /// # Errors
    /// As [`create`](Self::create), and the JSON-RPC error of work that ended within the period.
    pub(crate) async fn start_with_grace(
        &self,
        new: NewTask<'_>,
        length: Duration,
        gone: CancellationToken,
    ) -> Result<GraceAnswer, ErrorData> {
        self.start_background();
        let (record, slot) = self.admit(&new)?;
        let record = Arc::new(record);
        let (grace, answer) = GracePeriod::begin(length);
        let grace = Arc::new(grace);
        self.worker.start(record.clone(), Some(grace.clone()), slot);
        let _stop = StopUnanswered {
            engine: self,
            grace,
            record,
        };
        tokio::select! {
            biased;
            answer = answer => {
                answer.unwrap_or_else(|_| Err(ErrorData::internal_error("The work stopped without a result", None)))
            }
            () = gone.cancelled() => Err(cancelled()),
        }
    }

    /// Whether a new task of this tool is left to whichever node takes it on.
    pub(crate) fn hands_over(&self, tool: &RegisteredTool) -> bool {
        self.worker.hands_over(tool)
    }

    /// A record for a new task, counted against the quotas and not stored yet, and the slot of its execution, unless that is
    /// left to whichever node takes it on.
    ///
    /// # Errors
    /// A quota that is used up, a node that is stopping.
    fn admit(&self, new: &NewTask<'_>) -> Result<(TaskRecord, Option<Slot>), ErrorData> {
        self.refuse_if_closing()?;
        let tool = new.tool;
        let hands_over = self.hands_over(tool);
        let slot = (!hands_over)
            .then(|| self.admission.slots.take_or_refuse(tool.poll_interval))
            .transpose()?;
        let mut record = self.new_record(new)?;
        if hands_over {
            record = record.unclaimed();
        }
        self.admission.quota.admit(&record, tool.poll_interval)?;
        Ok((record, slot))
    }

    fn new_record(&self, new: &NewTask<'_>) -> Result<TaskRecord, ErrorData> {
        let tool = new.tool;
        let claim = self.records.claim();
        let (id, ledger) = match &new.before {
            Some((id, ledger)) => (id.clone(), ledger.clone()),
            None => (new_id()?, Ledger::default()),
        };
        let mut record = TaskRecord::new(
            id,
            tool.name.clone(),
            new.arguments.clone(),
            new.client.capabilities.clone(),
            self.records.now(),
            tool.ttl,
            tool.poll_interval,
        );
        record.ledger = ledger;
        record.body_version = tool.version.clone();
        record.input_schema = Some(tool.schema_hash);
        record.principal = new.client.caller.shared_principal();
        record.trace = new.client.trace.clone().map(Box::new);
        record.execution.node = Some(claim.node);
        record.execution.lease_until = Some(claim.lease_until);
        record.last_write = Some(self.records.write_id());
        Ok(record)
    }
}

/// Stops work that is no task yet, once the call no longer waits for it.
struct StopUnanswered<'a> {
    engine: &'a TaskEngine,
    grace: Arc<GracePeriod>,
    record: Arc<TaskRecord>,
}

impl Drop for StopUnanswered<'_> {
    fn drop(&mut self) {
        // A call that was answered is not stopped, and what was made a task stays one.
        if self.grace.end().is_none() {
            return;
        }
        self.engine.admission.quota.release(&self.record);
        self.engine.executions.cancel(&self.record.task_id);
    }
}
