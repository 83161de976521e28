//! A server with the tools of these tests.

use serde_json::Value;

use super::tools;
use crate::harness::{Client, Log, Mode, Node, Outcome, Person, TestStore, Way, config};

/// Sealing keys that two servers share.
const KEYS: &str = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVoxMjM0NTY=";

pub(crate) struct Lab {
    node: Node,
    pub(crate) store: TestStore,
    pub(crate) work: Log,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(settings: &[(&str, &str)]) -> Self {
        Self::on(&TestStore::new(Mode::Straight), Log::default(), settings)
    }

    /// Another build of the same server: same store, same clock, other settings.
    pub(crate) fn sibling(&self, settings: &[(&str, &str)]) -> Self {
        Self::on(&self.store, self.work.clone(), settings)
    }

    fn on(store: &TestStore, work: Log, settings: &[(&str, &str)]) -> Self {
        let defaults = [
            ("mcp.tasks.request-state.keys", KEYS),
            ("mcp.tasks.request-state.ttl", "PT1M"),
        ];
        let config = config(&[&defaults, settings].concat());
        Self {
            node: Node::on(store, |b| tools::register(b.config(config)).state(work.clone())),
            store: store.clone(),
            work,
        }
    }

    /// How many records were created.
    pub(crate) fn creates(&self) -> u64 {
        self.store.tally().creates
    }

    /// A client that is asked everything and says what `person` says.
    pub(crate) async fn client(&self, way: Way, person: impl Person) -> Client {
        self.client_with(way, way.capabilities(), person).await
    }

    pub(crate) async fn client_with(&self, way: Way, capabilities: Value, person: impl Person) -> Client {
        self.node.client_with(way, capabilities, person).await
    }

    /// What `tool` comes to for a client that answers as `person` does.
    pub(crate) async fn run(&self, way: Way, tool: &'static str, arguments: Value, person: impl Person) -> Outcome {
        let client = self.client(way, person).await;
        client.converse(tool, arguments).await
    }
}

/// The form of these tools, accepted.
pub(crate) fn go() -> Value {
    crate::harness::accept(serde_json::json!({"go": true}))
}

/// Says yes to everything.
pub(crate) fn yes(_: &Value) -> Result<Value, rmcp::ErrorData> {
    Ok(go())
}
