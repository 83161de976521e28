//! Lists that change while the server runs, and who is told.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rmcp::{
    Peer, RoleServer,
    model::{ErrorData, ResourceUpdatedNotificationParam},
    service::SubscriptionContext,
};
use tokio::sync::broadcast;

use crate::{handler::Session, resources::WATCHED};

/// What changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A tool came or went.
    Tools,
    /// A prompt came or went.
    Prompts,
    /// The watched resource has new content.
    WatchedResource,
}

/// The changeable part of the fixtures, common to every session and request.
#[derive(Debug)]
pub(crate) struct Changes {
    sender: broadcast::Sender<Change>,
    extra_tool: AtomicBool,
    extra_prompt: AtomicBool,
    revision: AtomicU64,
}

impl Changes {
    /// Nothing extra is listed at first.
    pub(crate) fn new() -> Self {
        Self {
            sender: broadcast::channel(64).0,
            extra_tool: AtomicBool::new(false),
            extra_prompt: AtomicBool::new(false),
            revision: AtomicU64::new(0),
        }
    }

    /// Whether the tool that comes and goes is there now.
    pub(crate) fn extra_tool(&self) -> bool {
        self.extra_tool.load(Ordering::Acquire)
    }

    /// Whether the prompt that comes and goes is there now.
    pub(crate) fn extra_prompt(&self) -> bool {
        self.extra_prompt.load(Ordering::Acquire)
    }

    /// How often the watched resource was changed.
    pub(crate) fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// Makes the change and tells everybody who listens.
    pub(crate) fn apply(&self, change: Change) {
        match change {
            Change::Tools => {
                self.extra_tool.fetch_not(Ordering::AcqRel);
            }
            Change::Prompts => {
                self.extra_prompt.fetch_not(Ordering::AcqRel);
            }
            Change::WatchedResource => {
                self.revision.fetch_add(1, Ordering::AcqRel);
            }
        }
        // An error only says that there is no listener.
        let _ = self.sender.send(change);
    }

    /// Serves one `subscriptions/listen` stream until its client goes away.
    pub(crate) async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.sender.subscribe();
        loop {
            let change = tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                change = changes.recv() => change,
            };
            let accepted = subscription.accepted();
            let sink = subscription.sink();
            let sent = match change {
                Ok(Change::Tools) if accepted.tools_list_changed == Some(true) => sink.notify_tool_list_changed().await,
                Ok(Change::Prompts) if accepted.prompts_list_changed == Some(true) => {
                    sink.notify_prompt_list_changed().await
                }
                Ok(Change::WatchedResource)
                    if accepted
                        .resource_subscriptions
                        .as_ref()
                        .is_some_and(|uris| uris.iter().any(|uri| uri == WATCHED)) =>
                {
                    sink.notify_resource_updated(WATCHED).await
                }
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => continue,
                Err(broadcast::error::RecvError::Closed) => return Ok(()),
            };
            sent.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        }
    }

    /// Tells one session of the 2025-11-25 protocol, as long as it lives.
    pub(crate) fn forward(&self, peer: Peer<RoleServer>, session: std::sync::Weak<Session>) {
        let mut changes = self.sender.subscribe();
        tokio::spawn(async move {
            loop {
                let change = match changes.recv().await {
                    Ok(change) => change,
                    Err(broadcast::error::RecvError::Lagged(_)) => continue,
                    Err(broadcast::error::RecvError::Closed) => return,
                };
                let Some(session) = session.upgrade() else {
                    return;
                };
                let sent = match change {
                    Change::Tools => peer.notify_tool_list_changed().await,
                    Change::Prompts => peer.notify_prompt_list_changed().await,
                    Change::WatchedResource if session.watches(WATCHED) => {
                        peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(WATCHED))
                            .await
                    }
                    Change::WatchedResource => Ok(()),
                };
                if sent.is_err() {
                    return;
                }
            }
        });
    }
}
