//! What a synchronous call carries from one round to the next.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_tasks_core::{Answers, ClientCapabilities, InputRequest, Json, Ledger, Refusal, Suspension, TaskId};
use serde::{Deserialize, Serialize};

/// The state of a call between two runs of its body: in the sealed `requestState`, or in the memory of the call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Round {
    /// Names the call over all its rounds; the task's id, should it become one. So the same last round sent twice makes
    /// one task, and keys for other systems are the same before and after.
    pub(crate) id: TaskId,
    /// The `version` of the tool's attribute when the call was begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<Arc<str>>,
    pub(crate) ledger: Ledger,
    pub(crate) open: Vec<InputRequest>,
}

impl Round {
    pub(crate) fn first(id: TaskId, version: Option<Arc<str>>) -> Self {
        Self {
            id,
            version,
            ledger: Ledger::default(),
            open: Vec::new(),
        }
    }

    pub(crate) fn park(&mut self, suspension: Suspension) {
        self.ledger = suspension.ledger;
        self.open = suspension.open;
    }

    pub(crate) fn answer(&mut self, responses: &BTreeMap<String, Json>) {
        let taken = Answers::apply(&self.ledger, &self.open, responses);
        self.ledger = taken.ledger;
        self.open = taken.open;
    }

    /// Gives up on the open questions that a client with these capabilities cannot be asked.
    pub(crate) fn refuse_what_is_beyond(&mut self, capabilities: &ClientCapabilities) {
        for request in self.open.clone() {
            if !capabilities.allow(request.kind) {
                self.refuse(&request.key, &Refusal::capability(request.kind));
            }
        }
    }

    pub(crate) fn refuse(&mut self, key: &str, refusal: &Refusal) {
        let taken = Answers::refuse(&self.ledger, &self.open, key, refusal);
        self.ledger = taken.ledger;
        self.open = taken.open;
    }
}
