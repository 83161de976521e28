//! The one way to build a server and to drive a client of it.

mod client;
mod store;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_tasks::Config;
use mcp_tasks::host::TaskRuntimeBuilder;
use mcp_tasks::prelude::*;
use serde_json::{Value, json};

pub(crate) use client::{
    Client, Outcome, Person, Reply, SILENCE, Way, accept, code, done, keys, no_user, status, text,
};
pub(crate) use mcp_tasks_tests::scripted::{Dice, Storm};
pub(crate) use store::{Link, REPLAY, TestStore};

/// Whether a scenario is disturbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It is not.
    Straight,
    /// Every write to the ledger of a running execution ends that execution, as if its process had died the moment the
    /// write was durable; another one starts and replays.
    Replayed,
    /// So does every report of progress that is stored, which kills steps half way.
    Hostile,
}

/// Stamps a scenario out in both modes that change nothing about how often a step runs.
macro_rules! in_both_modes {
    ($($(#[$meta:meta])* async fn $name:ident($mode:ident: Mode) $body:block)+) => { $(
        mod $name {
            use super::*;

            $(#[$meta])*
            async fn scenario($mode: Mode) $body

            #[tokio::test(start_paused = true)]
            async fn straight() {
                scenario(Mode::Straight).await;
            }

            #[tokio::test(start_paused = true)]
            async fn replayed_after_every_write() {
                scenario(Mode::Replayed).await;
            }
        }
    )+ };
}
pub(crate) use in_both_modes;

/// A server in this process.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) store: TestStore,
    /// What its bodies leave, where a test gives them no other log.
    pub(crate) log: Log,
    runtime: TaskRuntime,
}

impl Node {
    /// One with these tools and a store of its own.
    pub(crate) fn new(mode: Mode, tools: impl FnOnce(TaskRuntimeBuilder) -> TaskRuntimeBuilder) -> Self {
        Self::on(&TestStore::new(mode), tools)
    }

    /// Another one on a store that is there, as after a restart with another build.
    pub(crate) fn on(store: &TestStore, tools: impl FnOnce(TaskRuntimeBuilder) -> TaskRuntimeBuilder) -> Self {
        let log = Log::default();
        let builder = TaskRuntime::builder()
            .without_inventory()
            .config(config(&[]))
            .state(log.clone())
            .store(store.shared())
            .clock(store.clock());
        Self {
            store: store.clone(),
            log,
            runtime: tools(builder).build().expect("the tools of the test are right"),
        }
    }

    /// Stops it, as a signal does.
    pub(crate) async fn shutdown(&self, patience: Duration) -> usize {
        self.runtime.shutdown(patience).await
    }

    /// A client of it that declares tasks and elicitation.
    pub(crate) async fn client(&self) -> Client {
        let capabilities = json!({
            "elicitation": {"form": {}},
            "extensions": {"io.modelcontextprotocol/tasks": {}},
        });
        self.client_with(Way::Task, capabilities, no_user).await
    }

    /// A client of it that declares this, and whose user answers so.
    pub(crate) async fn client_with(&self, way: Way, capabilities: Value, person: impl Person) -> Client {
        Client::connect(self.runtime.handler(), way, capabilities, person).await
    }

    /// The node and a client of it.
    pub(crate) async fn start(
        mode: Mode,
        tools: impl FnOnce(TaskRuntimeBuilder) -> TaskRuntimeBuilder,
    ) -> (Self, Client) {
        let node = Self::new(mode, tools);
        let client = node.client().await;
        (node, client)
    }
}

/// Two nodes with the same tools on one store, the first over a link of its own.
pub(crate) struct Pair {
    pub(crate) store: TestStore,
    pub(crate) link: Arc<Link>,
    pub(crate) node: Node,
    pub(crate) first: Client,
    pub(crate) second: Client,
    pub(crate) first_log: Log,
    pub(crate) second_log: Log,
}

impl Pair {
    pub(crate) async fn start(
        link: fn(&TestStore) -> Arc<Link>,
        tools: impl Fn(TaskRuntimeBuilder) -> TaskRuntimeBuilder,
    ) -> Self {
        let store = TestStore::new(Mode::Straight);
        let link = link(&store);
        let node = Node::on(&store, |b| tools(b).store(link.clone()));
        let other = Node::on(&store, tools);
        Self {
            first: node.client().await,
            second: other.client().await,
            first_log: node.log.clone(),
            second_log: other.log.clone(),
            store,
            link,
            node,
        }
    }

    /// Starts the tool on the first node, and returns its task once a body there has left this line.
    pub(crate) async fn begin(&self, tool: &str, line: &str) -> String {
        let id = self.first.start(tool, json!({})).await;
        while self.first_log.count(line) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        id
    }
}

/// Settings, and nothing of the environment's files.
pub(crate) fn config(settings: &[(&str, &str)]) -> Config {
    let config = settings
        .iter()
        .fold(Config::builder().without_file(), |config, (key, value)| {
            config.set(*key, *value)
        });
    config.build().expect("nothing is wrong")
}

/// What bodies leave behind for a test to see.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn push(&self, line: impl Into<String>) {
        self.0.lock().expect("no test panics inside").push(line.into());
    }

    /// As [`push`](Self::push); how often the line was written so far.
    pub(crate) fn done(&self, line: &str) -> usize {
        self.push(line);
        self.count(line)
    }

    pub(crate) fn count(&self, line: &str) -> usize {
        self.lines().iter().filter(|l| *l == line).count()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().expect("no test panics inside").clone()
    }

    /// Writes the line when it is dropped.
    pub(crate) fn on_drop(&self, line: &'static str) -> OnDrop {
        OnDrop {
            log: self.clone(),
            line,
        }
    }
}

/// See [`Log::on_drop`].
#[derive(Debug)]
pub(crate) struct OnDrop {
    log: Log,
    line: &'static str,
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.log.push(self.line);
    }
}

/// A form with one text.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema, ElicitForm)]
pub(crate) struct Word {
    pub(crate) word: String,
}

/// The word of an answer, or what was done instead.
pub(crate) fn word(answer: Elicited<Word>) -> String {
    match answer {
        Elicited::Accept(Word { word }) => word,
        Elicited::Decline => "declined".to_owned(),
        Elicited::Cancel => "cancelled".to_owned(),
    }
}
