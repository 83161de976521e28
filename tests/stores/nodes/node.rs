//! A server process and a client of it.

use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_tasks_tests::patience::{until, within};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::nodes::database::Database;

const V2026: &str = "2026-07-28";

/// Overall time within which anything has to happen that a test waits for: far more than a loaded machine needs, so that
/// only what never happens fails by it.
const LIMIT: Duration = Duration::from_secs(60);

/// A lease that no test waits for: where it has to be over, a clock is put forward.
pub(crate) const LONG_LEASE: &str = "PT1M";

/// One that is not over, and is not looked at, within the time that a test waits for anything.
pub(crate) const ENDLESS_LEASE: &str = "PT1H";

/// Past the long lease, in milliseconds.
pub(crate) const PAST_LONG_LEASE: u64 = 120_000;

/// One that is waited for. Renewed three times in it, so that a loaded machine keeps it all the same.
pub(crate) const SHORT_LEASE: &str = "PT2S";

/// A fixture server on a database; it is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Node {
    name: &'static str,
    child: Child,
    log: Arc<Mutex<String>>,
    url: String,
    client: reqwest::Client,
    ids: AtomicU64,
}

impl Node {
    /// A server with this lease.
    pub(crate) async fn start(name: &'static str, database: &Database, lease: &str) -> Self {
        Self::configured(name, database, lease, &[]).await
    }

    /// A server that only speaks the protocol, and one that works for it.
    pub(crate) async fn front_and_worker(database: &Database, lease: &str) -> (Self, Self) {
        let front = Self::configured("front", database, lease, &[("MCP_TASKS_WORK", "false")]).await;
        (front, Self::start("worker", database, lease).await)
    }

    /// A server with these settings besides.
    pub(crate) async fn configured(
        name: &'static str,
        database: &Database,
        lease: &str,
        settings: &[(&str, &str)],
    ) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fixture-server"))
            .env_clear()
            // Coverage tools say through it where a process leaves its counts.
            .envs(std::env::vars().filter(|(name, _)| name.starts_with("LLVM_")))
            .env("MCP_TASKS_HTTP_ADDR", "127.0.0.1:0")
            .env("MCP_TASKS_STORE_URL", database.url())
            .env("MCP_TASKS_LEASE", lease)
            .envs(settings.iter().copied())
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .kill_on_drop(true)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the fixture server runs");
        let log = Arc::new(Mutex::new(String::new()));
        let (into, stderr) = (log.clone(), child.stderr.take().expect("it is piped"));
        tokio::spawn(async move {
            let mut lines = BufReader::new(stderr).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                eprintln!("{name}: {line}");
                let mut log = into.lock().expect("no test panics inside");
                log.push_str(&line);
                log.push('\n');
            }
        });
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let url = tokio::time::timeout(LIMIT, lines.next_line())
            .await
            .expect("the server says where it listens")
            .expect("its output is text")
            .expect("it does not end");
        Self {
            name,
            child,
            log,
            url,
            client: reqwest::Client::new(),
            ids: AtomicU64::new(1),
        }
    }

    /// Two servers on one database.
    pub(crate) async fn two(database: &Database, lease: &str) -> (Self, Self) {
        // One after the other: the first lays the database out. That several may do so at once is the stores' own test.
        let first = Self::start("first", database, lease).await;
        (first, Self::start("second", database, lease).await)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Ends it at once, as `kill -9` does.
    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.expect("a child can be killed");
    }

    /// Tells it to stop, as `kill` and process managers do, and waits until it has.
    pub(crate) async fn terminate(&mut self) {
        self.signal("TERM").await;
        let ended = tokio::time::timeout(LIMIT, self.child.wait()).await;
        let status = ended.expect("it stops").expect("a child can be waited for");
        assert!(status.success(), "{}: {status}", self.name);
    }

    /// Sends a signal by its name.
    pub(crate) async fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args(["-s", name, &self.pid().to_string()])
            .status();
        assert!(sent.await.expect("kill runs").success());
    }

    /// Waits until the log has these words.
    pub(crate) async fn logged(&self, words: &str) {
        until(words, async || {
            let log = self.log.lock().expect("no test panics inside");
            log.contains(words).then_some(())
        })
        .await;
    }

    /// A request to be sent.
    fn request(&self, method: &str, mut params: Value) -> reqwest::RequestBuilder {
        let name = params["taskId"].as_str().or_else(|| params["name"].as_str());
        let request = self
            .client
            .post(&self.url)
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .header("mcp-protocol-version", V2026)
            .header("mcp-method", method)
            .header("mcp-name", name.unwrap_or_default());
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": V2026,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {
                "elicitation": {},
                "extensions": {"io.modelcontextprotocol/tasks": {}},
            },
        });
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        request.body(body.to_string())
    }

    /// Begins to listen to these tasks: the stream of events.
    pub(crate) async fn listen(&self, ids: &[&str]) -> reqwest::Response {
        let request = self.request("subscriptions/listen", json!({"notifications": {"taskIds": ids}}));
        let response = within("an answer", request.send()).await.expect("the server is there");
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        response
    }

    /// Sends a request and waits for its response: the result, or the JSON-RPC error; `None` if the server is gone.
    pub(crate) async fn try_ask(&self, method: &str, params: Value) -> Option<Result<Value, Value>> {
        let request = self.request(method, params).timeout(LIMIT);
        let text = match request.send().await {
            Ok(response) => response.text().await,
            Err(error) => Err(error),
        };
        let text = match text {
            Ok(text) => text,
            Err(error) => {
                assert!(!error.is_timeout(), "{} does not answer {method}", self.name);
                return None;
            }
        };
        // The response is the body, or the last event of a stream.
        let last = text.lines().rev().find_map(|line| line.strip_prefix("data:"));
        let message: Value = serde_json::from_str(last.unwrap_or(&text))
            .unwrap_or_else(|error| panic!("{}: {error} in {text:?}", self.name));
        Some(match message.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(message["error"].clone()),
        })
    }

    /// The result of a request.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Value {
        let answer = self.try_ask(method, params).await;
        answer
            .expect("the server is there")
            .unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// The text that a tool answers with.
    async fn said(&self, tool: &str, arguments: Value) -> String {
        let result = self
            .ask("tools/call", json!({"name": tool, "arguments": arguments}))
            .await;
        words(&result).to_owned()
    }

    /// Starts a task; its id.
    pub(crate) async fn create(&self, tool: &str, arguments: Value) -> String {
        let result = self
            .ask("tools/call", json!({"name": tool, "arguments": arguments}))
            .await;
        assert_eq!(result["resultType"], "task", "{result}");
        result["taskId"].as_str().expect("a task has an id").to_owned()
    }

    /// The task as `tasks/get` shows it.
    pub(crate) async fn task(&self, id: &str) -> Value {
        self.ask("tasks/get", json!({"taskId": id})).await
    }

    /// The task once it has this status.
    pub(crate) async fn reaches(&self, id: &str, status: &str) -> Value {
        until(status, async || {
            let task = self.task(id).await;
            (task["status"] == status).then_some(task)
        })
        .await
    }

    pub(crate) async fn cancel(&self, id: &str) {
        self.ask("tasks/cancel", json!({"taskId": id})).await;
    }

    /// Answers the question `go` with yes.
    pub(crate) async fn answer(&self, id: &str) {
        self.ask("tasks/update", yes(id)).await;
    }

    /// How often the bodies in this process have noted this.
    pub(crate) async fn count(&self, event: &str) -> usize {
        let seen: Value = serde_json::from_str(&self.said("observe", json!({})).await).expect("it is JSON");
        let journal = seen["journal"].as_array().expect("it has a journal");
        journal.iter().filter(|noted| *noted == event).count()
    }

    /// Waits until a body in this process has noted this.
    pub(crate) async fn noted(&self, event: &str) {
        until(event, async || (self.count(event).await > 0).then_some(())).await;
    }

    /// The work of `tool` is over here: it came to its end, or it was dropped, as happens where the store tells at once that
    /// the task is no longer this node's.
    pub(crate) async fn left(&self, tool: &str) {
        let (ended, dropped) = (format!("{tool} ended"), format!("{tool} dropped"));
        until(&format!("{tool} is left"), async || {
            (self.count(&ended).await + self.count(&dropped).await > 0).then_some(())
        })
        .await;
    }

    /// Opens a gate in this process.
    pub(crate) async fn open(&self, gate: &str) {
        assert_eq!(self.said("open", json!({"gate": gate})).await, "open");
    }

    /// Puts this process's clock forward past the long lease.
    pub(crate) async fn pass_the_lease(&self) {
        assert_eq!(self.said("advance", json!({"ms": PAST_LONG_LEASE})).await, "advanced");
    }
}

/// `tasks/update` with a yes to the question `go`.
pub(crate) fn yes(id: &str) -> Value {
    json!({"taskId": id, "inputResponses": {"go": {"action": "accept", "content": {"confirm": true}}}})
}

/// The text of a tool's result, or of a completed task's.
pub(crate) fn words(result: &Value) -> &str {
    let content = result.get("result").unwrap_or(result);
    content["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("no text: {result}"))
}
