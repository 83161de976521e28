//! Being told of changes instead of asking for them (`subscriptions/listen` with `taskIds`).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rmcp::model::ErrorCode;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::connection::{Limit, RequestError};
use super::wire::{Heard, Whole};
use super::{DetailedTask, Inner};
use mcp_tasks_core::TaskId;

/// Something heard.
#[derive(Debug)]
pub(super) enum Told {
    /// The server will tell.
    Granted,
    /// It told.
    Task(Box<DetailedTask>),
    /// It will not.
    Refused,
    /// It does not any more.
    Ended,
}

/// A stream of changes of one task. Dropping it ends the subscription.
#[derive(Debug)]
pub(super) struct Listener {
    id: TaskId,
    heard: watch::Receiver<Heard>,
    granted: bool,
    request: JoinHandle<()>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        // The request is dropped with its task, and that tells the server.
        self.request.abort();
    }
}

impl Listener {
    pub(super) fn open(client: &Arc<Inner>, id: &TaskId) -> Self {
        let (sender, heard) = watch::channel(Heard::default());
        let client = client.clone();
        let params = json!({"notifications": {"taskIds": [id.as_str()]}});
        let request = tokio::spawn(async move {
            let mark = Whole { heard: Some(sender) };
            let Value::Object(params) = params else { return };
            let ended = client
                .request("subscriptions/listen", params, mark, Limit::Never, |_| {})
                .await;
            tracing::debug!(?ended, "the server tells no more of the task");
            // Such a server never will; others may have had a bad moment.
            let never = match ended {
                Err(RequestError::Refused(error)) => error.code == ErrorCode::METHOD_NOT_FOUND,
                Err(RequestError::Transport(error)) => matches!(error.status, Some(404 | 405 | 501)),
                Err(RequestError::Protocol(_)) => true,
                Ok(_) => false,
            };
            if never {
                client.never_tells.store(true, Ordering::Relaxed);
            }
        });
        Self {
            id: id.clone(),
            heard,
            granted: false,
            request,
        }
    }

    /// What comes next. Cancel safe.
    pub(super) async fn next(&mut self) -> Told {
        loop {
            if self.heard.changed().await.is_err() {
                return if self.granted { Told::Ended } else { Told::Refused };
            }
            let Heard { granted, task } = self.heard.borrow_and_update().clone();
            if !self.granted
                && let Some(granted) = granted
            {
                if !is_granted(&granted, &self.id) {
                    tracing::debug!("the server does not tell of this task");
                    return Told::Refused;
                }
                self.granted = true;
                // What came right behind it is not lost: the next look at the task is now.
                return Told::Granted;
            }
            let Some(Value::Object(params)) = task else { continue };
            match decode(params, &self.id) {
                Some(task) => return Told::Task(Box::new(task)),
                None => continue,
            }
        }
    }
}

fn is_granted(params: &Value, id: &TaskId) -> bool {
    let granted = params.get("notifications").and_then(|granted| granted.get("taskIds"));
    granted
        .and_then(Value::as_array)
        .is_some_and(|ids| ids.iter().any(|granted| granted.as_str() == Some(id.as_str())))
}

fn decode(params: Map<String, Value>, id: &TaskId) -> Option<DetailedTask> {
    match DetailedTask::decode(params) {
        Ok(task) if task.id == *id => Some(task),
        Ok(task) => {
            tracing::debug!(told = %task.id, "the server told of another task");
            None
        }
        Err(error) => {
            // The next look will say what is wrong, if something is.
            tracing::debug!(%error, "the server told something that is no task");
            None
        }
    }
}
