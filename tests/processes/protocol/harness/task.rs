//! Tasks as a test sees them, and the window into the fixture.

use serde_json::{Value, json};

use super::{Reply, Request, Wire, until};

/// What the fixture says of its inside.
#[derive(Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) journal: Vec<String>,
    pub(crate) minted: u64,
    pub(crate) writes: u64,
}

impl Seen {
    pub(crate) fn count(&self, event: &str) -> usize {
        self.journal.iter().filter(|noted| *noted == event).count()
    }
}

impl Wire {
    /// Calls a tool, declaring the extension.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Reply {
        self.ask(&Request::call(tool, arguments)).await
    }

    /// Calls a tool that becomes a task. Returns its id.
    #[track_caller]
    pub(crate) fn create(&self, tool: &str, arguments: Value) -> impl Future<Output = String> {
        self.create_by(Request::call(tool, arguments))
    }

    pub(crate) async fn create_by(&self, request: Request) -> String {
        let reply = self.ask(&request).await;
        let result = reply.result();
        assert_eq!(result["resultType"], "task", "{reply:?}");
        result["taskId"].as_str().unwrap().to_owned()
    }

    /// The task as `tasks/get` shows it.
    pub(crate) async fn task(&self, id: &str) -> Value {
        self.ask(&Request::get(id)).await.result().clone()
    }

    /// The task once it does not work any more: it waits for answers, or has ended.
    pub(crate) async fn settled(&self, id: &str) -> Value {
        until("the task settles", async || {
            let task = self.task(id).await;
            (task["status"] != "working").then_some(task)
        })
        .await
    }

    /// The task once it has this status.
    pub(crate) async fn reaches(&self, id: &str, status: &str) -> Value {
        until(status, async || {
            let task = self.task(id).await;
            (task["status"] == status).then_some(task)
        })
        .await
    }

    /// What happened inside.
    pub(crate) async fn seen(&self) -> Seen {
        let reply = self.call("observe", json!({})).await;
        let seen: Value = serde_json::from_str(reply.words()).unwrap();
        Seen {
            journal: serde_json::from_value(seen["journal"].clone()).unwrap(),
            minted: seen["minted"].as_u64().unwrap(),
            writes: seen["writes"].as_u64().unwrap(),
        }
    }

    /// Waits until a body has noted this.
    pub(crate) async fn noted(&self, event: &str) {
        until(event, async || (self.seen().await.count(event) > 0).then_some(())).await;
    }

    /// Opens a gate in the fixture.
    pub(crate) async fn open(&self, gate: &str) {
        assert_eq!(self.call("open", json!({"gate": gate})).await.words(), "open");
    }

    /// Puts the fixture's clock forward.
    pub(crate) async fn advance(&self, ms: u64) {
        assert_eq!(self.call("advance", json!({"ms": ms})).await.words(), "advanced");
    }
}
