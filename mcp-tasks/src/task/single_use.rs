//! What may be used once in a deployment: the sealed state of a call whose tool says so.

use std::sync::Arc;
use std::time::Duration;

use mcp_tasks_core::{ClientCapabilities, Json, Principal, StoreError, TaskId, TaskRecord, TaskStatus, Timestamp};
use rmcp::ErrorData;

use super::{TaskEngine, store_failed};

impl TaskEngine {
    /// Marks `key` as used until `until`, in the store, so that every node knows. Returns whether it was not used before.
    ///
    /// # Errors
    /// When the store fails; whether the key is used is not known then.
    pub(crate) async fn use_once(&self, key: TaskId, until: Timestamp) -> Result<bool, ErrorData> {
        self.start_background();
        let now = self.records.now();
        let nothing = Json::from(serde_json::value::RawValue::NULL.to_owned());
        let mut mark = TaskRecord::new(
            key,
            "".into(),
            nothing.clone(),
            ClientCapabilities::new(nothing),
            now,
            // At the very instant of its expiry a state is still good, and so must the mark be.
            Some(until.saturating_since(now) + Duration::from_millis(1)),
            Duration::from_millis(1),
        );
        // No caller's, so that no request can see it as a task.
        let owner = Principal::new("request-state").with_issuer("mcp-tasks:internal");
        mark.principal = Some(Arc::new(owner));
        mark.status = TaskStatus::Cancelled;
        mark.last_write = Some(self.records.write_id());
        match self.records.create(&mark).await.outcome {
            Ok(_) => Ok(true),
            Err(StoreError::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(store_failed(&error)),
        }
    }
}
