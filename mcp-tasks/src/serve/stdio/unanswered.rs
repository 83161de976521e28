//! The requests that rmcp has been given and has not answered.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ClientNotification, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::serve::subscription::LISTEN;

/// From how many on the next requests wait. More than a client has under way that waits for its answers; at some 15 KB each
/// they hold little memory.
const MANY: usize = 1000;

/// After how long without an answer requests are let in all the same: those under way are calls that take their time, and one
/// of them may wait for what the client says next.
const PATIENCE: Duration = Duration::from_millis(50);

/// Holds requests back while rmcp does not keep up with them: it starts each one that it is given at once, and a client that
/// sends faster than a busy machine answers would fill the memory.
#[derive(Debug, Default)]
pub(super) struct Unanswered {
    /// Without subscriptions, which have a limit of their own.
    ids: Mutex<HashSet<RequestId>>,
    answered: Notify,
}

impl Unanswered {
    /// Notes what rmcp is given.
    pub(super) fn received(&self, message: &RxJsonRpcMessage<RoleServer>) {
        match message {
            JsonRpcMessage::Request(request) if request.request.method() != LISTEN => {
                self.lock().insert(request.id.clone());
            }
            // Nothing more comes under this id.
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification {
                    self.remove(cancelled.params.request_id.as_ref());
                }
            }
            _ => {}
        }
    }

    /// Notes what rmcp says.
    pub(super) fn sent(&self, message: &TxJsonRpcMessage<RoleServer>) {
        match message {
            JsonRpcMessage::Response(response) => self.remove(Some(&response.id)),
            JsonRpcMessage::Error(error) => self.remove(error.id.as_ref()),
            _ => {}
        }
    }

    /// Waits while there are many and their number goes down. Cancel safe.
    pub(super) async fn wait_while_many(&self) {
        while self.lock().len() >= MANY {
            if timeout(PATIENCE, self.answered.notified()).await.is_err() {
                return;
            }
        }
    }

    fn remove(&self, id: Option<&RequestId>) {
        if id.is_some_and(|id| self.lock().remove(id)) {
            self.answered.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use serde_json::{Value, json};

    use super::*;

    fn request(id: usize, method: &str) -> RxJsonRpcMessage<RoleServer> {
        let params = json!({"name": "tool", "notifications": {}, "requestId": 0});
        let mut message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        if method.starts_with("notifications/") {
            message.as_object_mut().unwrap().remove("id");
        }
        serde_json::from_value(message).unwrap()
    }

    fn answer(id: usize) -> TxJsonRpcMessage<RoleServer> {
        let error: Value = json!({"code": -32603, "message": "failed"});
        serde_json::from_value(json!({"jsonrpc": "2.0", "id": id, "error": error})).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn requests_wait_for_answers_and_not_for_calls_that_take_long() {
        let unanswered = Unanswered::default();
        for id in 0..MANY {
            unanswered.received(&request(id, "tools/call"));
            unanswered.received(&request(MANY + id, LISTEN));
        }
        let mut waiting = Box::pin(unanswered.wait_while_many());
        assert!(waiting.as_mut().now_or_never().is_none());
        unanswered.sent(&answer(7));
        assert!(waiting.now_or_never().is_some());
        unanswered.received(&request(7, "tools/call"));
        let before = tokio::time::Instant::now();
        unanswered.wait_while_many().await;
        assert_eq!(before.elapsed(), PATIENCE);
        unanswered.received(&request(0, "notifications/cancelled"));
        assert!(unanswered.wait_while_many().now_or_never().is_some());
    }
}
