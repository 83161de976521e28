//! What clients ask of tasks: create, look, answer, cancel.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcp_tasks_core::{
    Change, Claim, ClientCapabilities, Json, Ledger, Principal, StoreError, TaskId, TaskRecord, TaskStatus, Timestamp,
    Updated, error_chain,
};
use rmcp::ErrorData;

use super::birth::Birth;
use super::claim::TakenOn;
use super::doubt::{Doubt, Remedy};
use super::places::Place;
use super::write::{REQUEST_PATIENCE, patiently};
use super::{Engine, Running, lock, store_failed};
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

/// One answer for a task that is unknown, expired, or somebody else's, so that none can be told from the others (Tasks
/// extension, "Protocol Errors" and "Security Considerations").
pub(crate) fn unknown_task() -> ErrorData {
    ErrorData::invalid_params("Unknown task: it does not exist, has expired, or is not yours", None)
}

/// How often an id that exists already is answered with another. With 128 random bits once is never needed; a second
/// collision means that the system's generator is broken.
const ID_ATTEMPTS: usize = 3;

impl Engine {
    /// Stores a new task and starts its first execution.
    ///
    /// # Errors
    /// A quota that is used up, a store that fails, a node that is stopping. Nothing was minted then.
    pub(crate) async fn create(&self, new: NewTask<'_>) -> Result<Arc<TaskRecord>, ErrorData> {
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
            let (record, place) = self.admit(&new)?;
            // Of an id that was known before, somebody else may have been told the task by now: it goes on.
            let remedy = if new.before.is_some() {
                Remedy::Start
            } else {
                Remedy::Remove
            };
            match self.mint(record.clone(), remedy).await {
                Ok(record) => {
                    match place {
                        Some(_) => self.spawn_execution(record.clone(), None, place),
                        None => self.may_claim(&record.task_id),
                    }
                    return Ok(record);
                }
                Err(StoreError::AlreadyExists { id }) if new.before.is_some() => {
                    // Sent twice at the same time.
                    let known = self.get(&id, new.client.caller.principal()).await?;
                    if known.status.is_terminal() {
                        self.inner.quota.give_back(&known);
                    }
                    return Ok(known);
                }
                Err(error) => {
                    self.inner.quota.give_back(&record);
                    if left == 0 || !matches!(error, StoreError::AlreadyExists { .. }) {
                        return Err(store_failed(&error));
                    }
                }
            }
        }
    }

    /// A record for a new task, counted against the quotas and not stored yet, and the place of its execution, unless that is
    /// left to whichever node takes it on.
    ///
    /// # Errors
    /// A quota that is used up, a node that is stopping.
    pub(crate) fn admit(&self, new: &NewTask<'_>) -> Result<(TaskRecord, Option<Place>), ErrorData> {
        if self.inner.closing.is_cancelled() {
            return Err(ErrorData::internal_error(
                "the server is shutting down; try again on another",
                None,
            ));
        }
        let tool = new.tool;
        let hands_over = self.hands_over(tool);
        let place = (!hands_over)
            .then(|| self.inner.places.take(tool.poll_interval))
            .transpose()?;
        let mut record = self.new_record(new)?;
        if hands_over {
            record = record.unclaimed();
        }
        self.inner.quota.take(&record, tool.poll_interval)?;
        Ok((record, place))
    }

    /// Stores a record that was admitted. Where it is not known in the end whether it is there, as the store failed or this
    /// future was dropped, `remedy` is what is done about it.
    ///
    /// # Errors
    /// The store's; the record counts against no quota then, unless there is another of its id.
    pub(crate) async fn mint(&self, record: TaskRecord, remedy: Remedy) -> Result<Arc<TaskRecord>, StoreError> {
        self.start_background();
        let counted = Counted {
            engine: self,
            record: &record,
        };
        let doubt = Doubt::of(self, &record, remedy);
        // What one attempt leaves open, a refusal of the next does not settle.
        let is_open = AtomicBool::new(false);
        let attempt = || async {
            let created = self.inner.store.create(record.clone()).await;
            if created.as_ref().is_err_and(StoreError::is_retryable) {
                is_open.store(true, Ordering::Relaxed);
            }
            created
        };
        let created = patiently(REQUEST_PATIENCE, attempt).await;
        let is_known = match &created {
            Ok(record) => {
                tracing::info!(task_id = %record.task_id, tool = %record.tool, ttl_ms = record.ttl_ms, "task created");
                true
            }
            // What counts under this id now is the task that is there.
            Err(StoreError::AlreadyExists { .. }) => true,
            Err(error) => !error.is_retryable() && !is_open.load(Ordering::Relaxed),
        };
        if matches!(created, Ok(_) | Err(StoreError::AlreadyExists { .. })) {
            counted.keep();
        }
        if let Some(doubt) = doubt.filter(|_| is_known) {
            doubt.known();
        }
        created
    }

    fn new_record(&self, new: &NewTask<'_>) -> Result<TaskRecord, ErrorData> {
        let tool = new.tool;
        let claim = self.claim();
        let (id, ledger) = match &new.before {
            Some((id, ledger)) => (id.clone(), ledger.clone()),
            None => (new_id()?, Ledger::default()),
        };
        let mut record = TaskRecord::new(
            id,
            tool.name.clone(),
            new.arguments.clone(),
            self.share(ClientCapabilities::new(new.client.capabilities.clone())),
            self.now(),
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
        record.last_write = Some(self.write_id());
        Ok(record)
    }

    /// The task, if it is there and `caller`'s. One whose node is gone is taken over first, so that nobody is shown work that
    /// nobody does.
    ///
    /// # Errors
    /// [`unknown_task`], or a store that fails.
    pub(crate) async fn get(&self, id: &TaskId, caller: Option<&Principal>) -> Result<Arc<TaskRecord>, ErrorData> {
        let found = self.find(id, caller).await;
        found.map_err(|error| store_failed(&error))?.ok_or_else(unknown_task)
    }

    /// As [`get`](Self::get), for those who tell the ways in which the store fails apart.
    pub(crate) async fn find(
        &self,
        id: &TaskId,
        caller: Option<&Principal>,
    ) -> Result<Option<Arc<TaskRecord>>, StoreError> {
        self.start_background();
        let record = self.owned(id, caller).await?;
        let abandoned = record.as_ref().filter(|record| self.is_abandoned(record, self.now()));
        let Some(abandoned) = abandoned else {
            return Ok(record);
        };
        // Boxed apart: every look-up would be given room for it.
        match Box::pin(self.recover(abandoned)).await {
            Ok(TakenOn::Settled) => self.owned(id, caller).await,
            // It is as it was.
            Ok(TakenOn::NotHere | TakenOn::Full) => Ok(record),
            Err(error) => {
                tracing::warn!(
                    task_id = %id,
                    error = %error_chain(&error),
                    "a task whose node is gone could not be taken over; it is left for the next look"
                );
                Ok(record)
            }
        }
    }

    async fn owned(&self, id: &TaskId, caller: Option<&Principal>) -> Result<Option<Arc<TaskRecord>>, StoreError> {
        let record = self.read(id).await?;
        record.iter().for_each(|record| self.inner.quota.see(record));
        Ok(record.filter(|record| Principal::is_owner(record.principal.as_deref(), caller)))
    }

    /// Takes in answers. The task was looked up with [`get`](Self::get) before, so that its owner and its tool's guard
    /// have been asked; the change itself is decided in the mutation.
    ///
    /// # Errors
    /// [`unknown_task`] if the task went away meanwhile, or a store that fails.
    pub(crate) async fn answer(
        &self,
        id: &TaskId,
        client: &RequestOrigin,
        responses: BTreeMap<String, Json>,
    ) -> Result<(), ErrorData> {
        if self.inner.closing.is_cancelled() {
            // The task stays parked, and another node takes the answer.
            return Err(ErrorData::internal_error(
                "the server is shutting down; try again on another",
                None,
            ));
        }
        let now = self.now();
        let capabilities = self.share(ClientCapabilities::new(client.capabilities.clone()));
        // Only the write that flipped the status starts an execution, however often the same answers come.
        let updated = if self.works() {
            let mutation =
                move |record: &TaskRecord, claim: &Claim| record.answered(now, &responses, &capabilities, claim);
            self.write_start(id, None, self.claim(), mutation).await
        } else {
            let mutation = move |record: &TaskRecord| record.answered_unclaimed(now, &responses, &capabilities);
            self.write(id, REQUEST_PATIENCE, mutation).await
        };
        let updated = updated
            .map_err(|error| store_failed(&error))?
            .ok_or_else(unknown_task)?;
        if !updated.applied {
            let open: Vec<_> = updated.record.open.iter().map(|request| &*request.key).collect();
            tracing::info!(task_id = %id, ?open, "no answer was taken: none fits a question that is open");
        }
        if updated.applied && updated.record.status == TaskStatus::Working {
            tracing::info!(
                task_id = %id,
                tool = %updated.record.tool,
                execution = updated.record.execution.epoch,
                "task resumed"
            );
        }
        Ok(())
    }

    /// Writes what may start an execution under `claim`, and starts it if it did, in this place or the next free one. Where
    /// the acknowledgement does not come, or nobody waits for it any more, the execution is started once it is known.
    pub(crate) async fn write_start(
        &self,
        id: &TaskId,
        place: Option<Place>,
        claim: Claim,
        mutation: impl Fn(&TaskRecord, &Claim) -> Change + Send + Sync + 'static,
    ) -> Result<Option<Updated>, StoreError> {
        let write = self.write_id();
        let doubt = Doubt::new(self, id, write, claim.lease_until, Remedy::Start);
        let updated = self
            .write_as(write, id, REQUEST_PATIENCE, move |record| mutation(record, &claim))
            .await?;
        doubt.known();
        if let Some(updated) = &updated
            && updated.applied
            && updated.record.status == TaskStatus::Working
        {
            self.spawn_execution(updated.record.clone(), None, place);
        }
        Ok(updated)
    }

    /// Calls the task off, wherever it is in its life.
    ///
    /// # Errors
    /// [`unknown_task`] if the task went away meanwhile, or a store that fails.
    pub(crate) async fn cancel(&self, id: &TaskId) -> Result<(), ErrorData> {
        let now = self.now();
        let updated = self
            .write(id, REQUEST_PATIENCE, move |record| record.cancelled(now))
            .await
            .map_err(|error| store_failed(&error))?
            .ok_or_else(unknown_task)?;
        if updated.applied {
            self.ended(&updated.record, now);
            if let Some(running) = lock(&self.inner.running).get(id) {
                running.token.cancel();
            }
        }
        Ok(())
    }

    /// Starts the execution that `record` names, on this node: in its place, or else in the next that is free.
    pub(crate) fn spawn_execution(&self, record: Arc<TaskRecord>, birth: Option<Arc<Birth>>, place: Option<Place>) {
        let token = self.inner.stopping.child_token();
        let running = Running {
            epoch: record.execution.epoch,
            token: token.clone(),
            written: record.version,
            changed: Arc::default(),
        };
        let before = lock(&self.inner.running).insert(record.task_id.clone(), running);
        if let Some(before) = before.filter(|before| before.epoch < record.execution.epoch) {
            // What it still does counts no more.
            before.token.cancel();
        }
        let engine = self.clone();
        tokio::spawn(async move {
            let leave = Leave {
                engine: &engine,
                id: &record.task_id,
                epoch: record.execution.epoch,
            };
            engine.execute(&record, token, birth.as_ref(), place).await;
            drop(leave);
        });
    }

    /// How long ago the task was created, for the log.
    pub(crate) fn age_ms(record: &TaskRecord, now: Timestamp) -> u64 {
        u64::try_from(now.saturating_since(record.created_at).as_millis()).unwrap_or(u64::MAX)
    }

    /// The task ended: it is logged, and no longer counts for its owner.
    pub(crate) fn ended(&self, record: &TaskRecord, now: Timestamp) {
        self.inner.quota.give_back(record);
        tracing::info!(
            task_id = %record.task_id,
            tool = %record.tool,
            status = record.status.as_str(),
            duration_ms = Self::age_ms(record, now),
            "task finished"
        );
    }
}

/// Takes a new task off the quota, unless it is there.
struct Counted<'a> {
    engine: &'a Engine,
    record: &'a TaskRecord,
}

impl Counted<'_> {
    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.engine.inner.quota.give_back(self.record);
    }
}

/// Takes an execution off the list of those that run here, also when its task is dropped or panics.
struct Leave<'a> {
    engine: &'a Engine,
    id: &'a TaskId,
    epoch: u64,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let mut running = lock(&self.engine.inner.running);
        // The next execution of the task may have taken the place already.
        if running.get(self.id).is_some_and(|running| running.epoch == self.epoch) {
            running.remove(self.id);
        }
    }
}
