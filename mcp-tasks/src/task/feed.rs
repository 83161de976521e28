//! What the store tells of changes that other nodes make.

use std::sync::Arc;

use futures::StreamExt;
use mcp_tasks_core::{ChangeStream, TaskChange};

use super::background::Job;
use super::claim_queue::ClaimQueue;
use super::executions::Executions;
use super::watchers::Watchers;

/// Hands changes on to listeners and executions of this node, and tasks that no node runs to be claimed.
pub(crate) struct HandOnChanges {
    changes: ChangeStream,
    next: Option<TaskChange>,
    watchers: Arc<Watchers>,
    executions: Arc<Executions>,
    claims: Arc<ClaimQueue>,
}

impl HandOnChanges {
    pub(crate) const fn new(
        changes: ChangeStream,
        watchers: Arc<Watchers>,
        executions: Arc<Executions>,
        claims: Arc<ClaimQueue>,
    ) -> Self {
        Self {
            changes,
            next: None,
            watchers,
            executions,
            claims,
        }
    }
}

impl Job for HandOnChanges {
    async fn wait(&mut self) {
        self.next = self.changes.next().await;
        if self.next.is_none() {
            // The feed has ended.
            std::future::pending::<()>().await;
        }
    }

    async fn work(&mut self) {
        let change = self.next.take();
        if let Some(TaskChange::Unclaimed { id, .. }) = &change {
            self.claims.push(id);
        }
        match change {
            Some(TaskChange::Changed { id, version } | TaskChange::Unclaimed { id, version }) => {
                self.watchers.changed(&id);
                self.executions.record_changed(&id, version);
            }
            // Executions find out for themselves when they renew their leases.
            Some(TaskChange::Resumed) => {
                self.watchers.all_changed();
                self.claims.request_look();
            }
            _ => {}
        }
    }
}
