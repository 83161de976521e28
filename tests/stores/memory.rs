//! The memory store, beside the others. Its contract suite runs in its own crate.

use std::sync::Arc;

use mcp_tasks::MemoryStore;
use mcp_tasks_core::TaskStore;

use crate::alone::{TwoNodes, on_a_database_of_its_own};

on_a_database_of_its_own! { alone, async {
    let store: Arc<dyn TaskStore> = Arc::new(MemoryStore::new());
    TwoNodes { nodes: [store.clone(), store], keep: () }
} }
