//! The handle of a task, and what a call became.

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::wait::Wait;
use super::{ClientError, DetailedTask, SavedTask, TaskClient, ToolResult};
use mcp_tasks_core::TaskId;

/// What a call became.
#[derive(Debug)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the protocol has two answers, and a caller handles both"
)]
pub enum ToolCall {
    /// A result, at once.
    Immediate(ToolResult),
    /// A task.
    Deferred(TaskHandle),
}

/// A task of a server.
///
/// Dropping it, or the future of [`wait`](Self::wait), does nothing to the task, which goes on; only
/// [`cancel`](Self::cancel) ends it. To go on in another process, store what it [serialises](SavedTask) to:
///
/// ```no_run
/// use mcp_tasks::client::{SavedTask, TaskClient, TaskHandle};
///
/// # async fn f(client: TaskClient, handle: TaskHandle) -> Result<(), Box<dyn std::error::Error>> {
/// std::fs::write("task.json", serde_json::to_vec(&handle)?)?;
/// // ... and in another process:
/// let saved: SavedTask = serde_json::from_slice(&std::fs::read("task.json")?)?;
/// let mut handle = client.resume(saved)?;
/// println!("{}", handle.wait().await?.text());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TaskHandle {
    pub(super) client: TaskClient,
    pub(super) saved: SavedTask,
    pub(super) is_new: bool,
}

impl TaskHandle {
    /// The task's id.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.saved.id()
    }

    /// What has to be stored to go on later.
    #[must_use]
    pub const fn saved(&self) -> &SavedTask {
        &self.saved
    }

    /// Whether the task's time is over. The server may know better: [`get`](Self::get) asks it.
    #[must_use]
    pub fn is_past_due(&self) -> bool {
        self.saved.is_past_due(self.client.connection.clock.now())
    }

    /// Waits for the task's result, and does all that is needed on the way: polls it as often as the server wants, or listens
    /// for changes where the server has subscriptions; hands each question to the client's [handler](super::InputHandler) once; tries
    /// again while the server cannot be reached.
    ///
    /// # Errors
    /// [`Failed`](ClientError::Failed) and [`Cancelled`](ClientError::Cancelled) if it has ended so,
    /// [`UnknownTask`](ClientError::UnknownTask) and [`Expired`](ClientError::Expired) if it is gone,
    /// [`InputNeeded`](ClientError::InputNeeded) if it asks something that this client has no handler for, and
    /// [`Transport`](ClientError::Transport) or [`Protocol`](ClientError::Protocol) if the server stays unreachable or
    /// makes no sense.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the task as it is; answers that were given are in the handle. A question that is being
    /// asked is dropped and asked again by the next wait.
    pub async fn wait(&mut self) -> Result<ToolResult, ClientError> {
        let pacing = &self.client.connection.pacing;
        let first_poll = match std::mem::take(&mut self.is_new) {
            // A first poll later than the server's own interval would delay what it is to speed up.
            true => pacing.first_poll.min(pacing.interval(self.saved.poll_interval())),
            false => std::time::Duration::ZERO,
        };
        let wait = Wait::new(
            &self.client.connection,
            &self.client.observer,
            &mut self.saved,
            first_poll,
        );
        wait.run().await
    }

    /// The present state of the task (`tasks/get`).
    ///
    /// # Errors
    /// As [`TaskClient::get`]; [`Expired`](ClientError::Expired) if it is gone because its time is over.
    pub async fn get(&mut self) -> Result<DetailedTask, ClientError> {
        match self.client.connection.get(&self.id()).await {
            Ok(task) => {
                self.saved.update_times(&task);
                Ok(task)
            }
            Err(ClientError::UnknownTask(_)) if self.is_past_due() => {
                Err(ClientError::Expired(Box::new(self.saved.clone())))
            }
            Err(error) => Err(error.with_task(&self.saved)),
        }
    }

    /// Answers a question by hand, with the `ElicitResult`, `CreateMessageResult` or `ListRootsResult` that it asks for.
    /// [`wait`](Self::wait) will not ask it again.
    ///
    /// # Errors
    /// As [`TaskClient::update`], and [`Protocol`](ClientError::Protocol) if the task does not ask this.
    pub async fn answer(&mut self, key: &str, response: Value) -> Result<(), ClientError> {
        let task = self.get().await?;
        let asked = match &task.state {
            super::TaskState::InputRequired { requests } => requests.iter().find(|request| request.key() == key),
            _ => None,
        };
        let request = asked.ok_or_else(|| {
            ClientError::protocol(format!(
                "the task {} does not ask anything under the key {key:?}",
                self.id()
            ))
        })?;
        self.saved.record_answer(request, response.clone());
        let answers = serde_json::Map::from_iter([(key.to_owned(), response)]);
        self.client.connection.update(&self.id(), answers).await?;
        self.saved.mark_acknowledged([key.to_owned()].iter());
        Ok(())
    }

    /// Cancels the task (`tasks/cancel`). The server acknowledges at once and may stop it later, or not at all: [`wait`](Self::wait) says
    /// how it ended.
    ///
    /// # Errors
    /// As [`TaskClient::cancel`].
    pub async fn cancel(&self) -> Result<(), ClientError> {
        self.client.connection.cancel(&self.id()).await
    }
}

impl Serialize for TaskHandle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.saved.serialize(serializer)
    }
}

impl From<TaskHandle> for SavedTask {
    fn from(handle: TaskHandle) -> Self {
        handle.saved
    }
}
