//! A server and its clients.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_tasks::host::Clock;
use mcp_tasks::store::{MemoryStore, TaskStore};
use mcp_tasks::{Config, TaskId, TaskRuntime};
use mcp_tasks_core::store::{Mutation, StoreFuture, Sweep, Updated};
use mcp_tasks_core::{TaskRecord, Timestamp, WriteId};
use rmcp::ServiceExt;
use rmcp::model::{ClientConfig, ErrorData, Implementation, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::carriers::tools::{self, Work};

mod client;

use client::Handler;
pub(crate) use client::{Client, Outcome, Reply, done};

/// The system's clock at the start, moved by tokio's time from then on.
#[derive(Debug)]
pub(crate) struct TestClock {
    start: Instant,
    skipped: AtomicU64,
}

impl TestClock {
    /// Moves this clock, and no timer of tokio's.
    pub(crate) fn skip(&self, time: Duration) {
        self.skipped.fetch_add(time.as_millis() as u64, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        let skipped = Duration::from_millis(self.skipped.load(Ordering::SeqCst));
        Timestamp::from_millis(1_800_000_000_000).saturating_add(self.start.elapsed() + skipped)
    }
}

/// The memory store, which counts what is created and can take its time over it.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    inner: MemoryStore,
    creates: AtomicUsize,
    swept: AtomicU64,
    slow: Mutex<Duration>,
}

impl Counting {
    pub(crate) fn creates(&self) -> usize {
        self.creates.load(Ordering::SeqCst)
    }

    /// How many expired records were removed.
    pub(crate) fn swept(&self) -> u64 {
        self.swept.load(Ordering::SeqCst)
    }

    pub(crate) fn slow_down(&self, creates: Duration) {
        *self.slow.lock().unwrap() = creates;
    }
}

impl TaskStore for Counting {
    fn create(&self, record: TaskRecord) -> StoreFuture<'_, Arc<TaskRecord>> {
        self.creates.fetch_add(1, Ordering::SeqCst);
        let slow = *self.slow.lock().unwrap();
        Box::pin(async move {
            if !slow.is_zero() {
                tokio::time::sleep(slow).await;
            }
            self.inner.create(record).await
        })
    }

    fn get<'a>(&'a self, id: &'a TaskId, now: Timestamp) -> StoreFuture<'a, Option<Arc<TaskRecord>>> {
        self.inner.get(id, now)
    }

    fn update<'a>(
        &'a self,
        id: &'a TaskId,
        now: Timestamp,
        write: WriteId,
        mutation: Mutation,
    ) -> StoreFuture<'a, Option<Updated>> {
        self.inner.update(id, now, write, mutation)
    }

    fn delete<'a>(&'a self, id: &'a TaskId) -> StoreFuture<'a, ()> {
        self.inner.delete(id)
    }

    fn as_sweep(&self) -> Option<&dyn Sweep> {
        Some(self)
    }
}

impl Sweep for Counting {
    fn sweep(&self, now: Timestamp) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            let swept = match self.inner.as_sweep() {
                Some(sweep) => sweep.sweep(now).await?,
                None => 0,
            };
            self.swept.fetch_add(swept, Ordering::SeqCst);
            Ok(swept)
        })
    }
}

/// A server with the tools of these tests.
pub(crate) struct Lab {
    runtime: TaskRuntime,
    pub(crate) store: Arc<Counting>,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) work: Work,
}

/// Sealing keys that two servers share.
const KEYS: &str = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVoxMjM0NTY=";

impl Lab {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(settings: &[(&str, &str)]) -> Self {
        let store = Arc::new(Counting::default());
        let clock = Arc::new(TestClock {
            start: Instant::now(),
            skipped: AtomicU64::new(0),
        });
        Self::on(store, clock, Work::default(), settings)
    }

    /// Another build of the same server: same store, same clock, other settings.
    pub(crate) fn sibling(&self, settings: &[(&str, &str)]) -> Self {
        Self::on(self.store.clone(), self.clock.clone(), self.work.clone(), settings)
    }

    fn on(store: Arc<Counting>, clock: Arc<TestClock>, work: Work, settings: &[(&str, &str)]) -> Self {
        let mut config = Config::builder()
            .without_file()
            .set("mcp.tasks.request-state.keys", KEYS)
            .set("mcp.tasks.request-state.ttl", "PT1M");
        for (key, value) in settings {
            config = config.set(*key, *value);
        }
        let runtime = TaskRuntime::builder()
            .config(config.build().unwrap())
            .state(work.clone())
            .store(store.clone())
            .clock(clock.clone());
        let runtime = tools::register(runtime.without_inventory()).build().unwrap();
        Self {
            runtime,
            store,
            clock,
            work,
        }
    }

    /// A client that is asked everything and says what `person` says.
    pub(crate) async fn client(&self, way: Way, person: impl Person) -> Client {
        self.client_with(way, way.capabilities(), person).await
    }

    pub(crate) async fn client_with(&self, way: Way, capabilities: Value, person: impl Person) -> Client {
        let (near, far) = tokio::io::duplex(1 << 16);
        let handler = self.runtime.handler();
        tokio::spawn(async move {
            if let Ok(server) = handler.serve(far).await {
                let _ = server.waiting().await;
            }
        });
        let capabilities = serde_json::from_value(capabilities).unwrap();
        let config = ClientConfig::new(capabilities, Implementation::new("tests", "1"))
            .with_protocol_version(ProtocolVersion::V_2025_11_25);
        let handler = Handler::new(config, person);
        let lifecycle = match way {
            Way::Live => ClientLifecycleMode::Initialize,
            _ => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
        };
        let service = handler.serve_with_lifecycle(near, lifecycle).await.unwrap();
        Client { service }
    }

    /// What `tool` comes to for a client that answers as `person` does.
    pub(crate) async fn run(&self, way: Way, tool: &'static str, arguments: Value, person: impl Person) -> Outcome {
        let client = self.client(way, person).await;
        client.converse(tool, arguments).await
    }
}

/// What carries the questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Rounds,
    Task,
    Live,
}

impl Way {
    pub(crate) const ALL: [Self; 3] = [Self::Rounds, Self::Task, Self::Live];

    pub(crate) fn capabilities(self) -> Value {
        let mut capabilities = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}});
        if self == Self::Task {
            capabilities["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
        }
        capabilities
    }
}

/// Answers a request of the server's.
pub(crate) trait Person: Fn(&Value) -> Result<Value, ErrorData> + Send + Sync + 'static {}

impl<F: Fn(&Value) -> Result<Value, ErrorData> + Send + Sync + 'static> Person for F {}

pub(crate) fn accept(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

/// Says yes to everything.
pub(crate) fn yes(_: &Value) -> Result<Value, ErrorData> {
    Ok(accept(json!({"go": true})))
}

/// The answer of a person who never answers.
pub(crate) const SILENCE: &str = "silence";

/// Must not be asked.
pub(crate) fn nobody(request: &Value) -> Result<Value, ErrorData> {
    panic!("asked: {request}")
}
