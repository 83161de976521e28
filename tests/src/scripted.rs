//! The scripted store, with tokio's timer.

pub use mcp_tasks_core::store::contract::Dice;
pub use mcp_tasks_core::store::contract::scripted::*;

/// A store that only stores until its script says otherwise.
pub fn scripted<S: mcp_tasks_core::TaskStore>(inner: S) -> ScriptedStore<S> {
    ScriptedStore::new(inner, |time| Box::pin(tokio::time::sleep(time)))
}
