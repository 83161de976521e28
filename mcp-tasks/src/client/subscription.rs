//! Notifications of a task's changes (`subscriptions/listen` with `taskIds`).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rmcp::model::ErrorCode;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::request::Timeout;
use super::request_error::RequestError;
use super::wire::{SubscriptionState, Verbatim};
use super::{Connection, DetailedTask};
use mcp_tasks_core::TaskId;

/// What happens to a subscription.
#[derive(Debug)]
pub(super) enum SubscriptionEvent {
    /// The server has acknowledged it for this task.
    Acknowledged,
    /// A notification with the task.
    Task(Box<DetailedTask>),
    /// The server has refused it.
    Refused,
    /// The server has ended it.
    Ended,
}

/// A stream of changes of one task. Dropping it ends the subscription.
#[derive(Debug)]
pub(super) struct Subscription {
    id: TaskId,
    state: watch::Receiver<SubscriptionState>,
    acknowledged: bool,
    request: JoinHandle<()>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        // The request is dropped with its task, and that tells the server.
        self.request.abort();
    }
}

impl Subscription {
    pub(super) fn open(client: &Arc<Connection>, id: &TaskId) -> Self {
        let (sender, state) = watch::channel(SubscriptionState::default());
        let client = client.clone();
        let params = json!({"notifications": {"taskIds": [id.as_str()]}});
        let request = tokio::spawn(async move {
            let mark = Verbatim {
                subscription: Some(sender),
            };
            let Value::Object(params) = params else { return };
            let ended = client
                .request("subscriptions/listen", params, mark, Timeout::Never, |_| {})
                .await;
            tracing::debug!(?ended, "the server tells no more of the task");
            // Such a server has no subscriptions; for others it may be a passing failure.
            let never = match ended {
                Err(RequestError::Refused(error)) => error.code == ErrorCode::METHOD_NOT_FOUND,
                Err(RequestError::Transport(error)) => matches!(error.status, Some(404 | 405 | 501)),
                Err(RequestError::Protocol(_)) => true,
                Ok(_) => false,
            };
            if never {
                client.subscriptions_unsupported.store(true, Ordering::Relaxed);
            }
        });
        Self {
            id: id.clone(),
            state,
            acknowledged: false,
            request,
        }
    }

    /// The next event.
    ///
    /// # Cancel safety
    /// No event is lost if the future is dropped.
    pub(super) async fn next(&mut self) -> SubscriptionEvent {
        loop {
            if self.state.changed().await.is_err() {
                return if self.acknowledged {
                    SubscriptionEvent::Ended
                } else {
                    SubscriptionEvent::Refused
                };
            }
            let SubscriptionState { acknowledged, task } = self.state.borrow_and_update().clone();
            if !self.acknowledged
                && let Some(acknowledged) = acknowledged
            {
                if !is_acknowledged(&acknowledged, &self.id) {
                    tracing::debug!("the server does not tell of this task");
                    return SubscriptionEvent::Refused;
                }
                self.acknowledged = true;
                // What came right behind it is not lost: the task is polled now.
                return SubscriptionEvent::Acknowledged;
            }
            let Some(Value::Object(params)) = task else { continue };
            match decode(params, &self.id) {
                Some(task) => return SubscriptionEvent::Task(Box::new(task)),
                None => continue,
            }
        }
    }
}

fn is_acknowledged(params: &Value, id: &TaskId) -> bool {
    let ids = params.get("notifications").and_then(|granted| granted.get("taskIds"));
    ids.and_then(Value::as_array)
        .is_some_and(|ids| ids.iter().any(|granted| granted.as_str() == Some(id.as_str())))
}

fn decode(params: Map<String, Value>, id: &TaskId) -> Option<DetailedTask> {
    match DetailedTask::decode(params) {
        Ok(task) if task.id == *id => Some(task),
        Ok(task) => {
            tracing::debug!(task = %task.id, "the server told of another task");
            None
        }
        Err(error) => {
            // The next poll will say what is wrong, if something is.
            tracing::debug!(%error, "the server told something that is no task");
            None
        }
    }
}
