//! The wires: HTTP and stdio, of the revision with the extension and of the one before.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::oneshot;

use super::{Fixture, Reply, Request, V2026, within};

/// The revision before tasks were an extension.
const V2025: &str = "2025-11-25";

/// A way to speak to a server of its own.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) fixture: Fixture,
    pub(super) transport: Transport,
    era: Era,
    ids: AtomicU64,
}

#[derive(Debug)]
pub(super) enum Transport {
    Http(reqwest::Client),
    Stdio(Stdio),
}

/// Which revision the client is of.
#[derive(Debug)]
enum Era {
    V2026,
    /// With the session's id, over HTTP.
    V2025(Option<String>),
}

impl Wire {
    /// A client of 2026-07-28 over HTTP.
    pub(crate) async fn http() -> Self {
        Self::http_with(&[]).await
    }

    pub(crate) async fn http_with(env: &[(&str, &str)]) -> Self {
        Self {
            fixture: Fixture::http(env).await,
            transport: Transport::Http(reqwest::Client::new()),
            era: Era::V2026,
            ids: AtomicU64::new(1),
        }
    }

    /// A client of 2026-07-28 on stdio.
    pub(crate) fn stdio() -> Self {
        Self::stdio_with(&[])
    }

    pub(crate) fn stdio_with(env: &[(&str, &str)]) -> Self {
        let (fixture, stdin, stdout) = Fixture::stdio(env);
        Self {
            fixture,
            transport: Transport::Stdio(Stdio::new(stdin, stdout)),
            era: Era::V2026,
            ids: AtomicU64::new(1),
        }
    }

    /// Clients of 2026-07-28, one over HTTP and one on stdio.
    pub(crate) async fn both() -> [Self; 2] {
        Self::both_with(&[]).await
    }

    pub(crate) async fn both_with(env: &[(&str, &str)]) -> [Self; 2] {
        [Self::http_with(env).await, Self::stdio_with(env)]
    }

    /// Clients of 2025-11-25, one over HTTP and one on stdio, after their handshake.
    pub(crate) async fn legacy() -> [Self; 2] {
        let mut wires = Self::both().await;
        for wire in &mut wires {
            wire.initialize(V2025).await;
        }
        wires
    }

    /// The handshake of 2025-11-25, asking for `version`. Returns the server's answer.
    pub(crate) async fn initialize(&mut self, version: &str) -> Value {
        self.era = Era::V2025(None);
        let params = json!({
            "protocolVersion": version,
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let (reply, headers) = self.exchange(&Request::new("initialize", params)).await;
        let session = headers.get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
        self.era = Era::V2025(session);
        self.notify("notifications/initialized", json!({})).await;
        reply.result().clone()
    }

    /// Whether what is sent can say who sends it.
    pub(crate) const fn is_http(&self) -> bool {
        matches!(self.transport, Transport::Http(_))
    }

    /// Sends a request and waits for the response.
    pub(crate) async fn ask(&self, request: &Request) -> Reply {
        self.exchange(request).await.0
    }

    /// Sends a request whose response is not waited for, without going away.
    pub(crate) async fn start(&self, request: &Request) {
        let body = self.body(request);
        match &self.transport {
            Transport::Http(client) => {
                let headers = self.headers(&request.method, request.name().as_deref());
                let post = client.post(self.fixture.url()).headers(headers).body(body.to_string());
                tokio::spawn(post.send());
            }
            Transport::Stdio(stdio) => stdio.send(&body).await,
        }
    }

    /// The request as JSON.
    pub(crate) fn body(&self, request: &Request) -> Value {
        let mut params = request.params.clone();
        if let Some(params) = params.as_object_mut() {
            let mut meta = request.meta.clone();
            if matches!(self.era, Era::V2026) {
                meta.insert("io.modelcontextprotocol/protocolVersion".to_owned(), json!(V2026));
                let info = json!({"name": "test", "version": "1"});
                meta.insert("io.modelcontextprotocol/clientInfo".to_owned(), info);
                let capabilities = request.capabilities.clone();
                meta.insert("io.modelcontextprotocol/clientCapabilities".to_owned(), capabilities);
            }
            if !meta.is_empty() {
                params.insert("_meta".to_owned(), Value::Object(meta));
            }
        }
        let id = request
            .id
            .clone()
            .unwrap_or_else(|| json!(self.ids.fetch_add(1, Ordering::Relaxed)));
        json!({"jsonrpc": "2.0", "id": id, "method": request.method, "params": params})
    }

    /// The headers that go with a request of this method and name.
    pub(crate) fn headers(&self, method: &str, name: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let value = |text: &str| HeaderValue::from_str(text).unwrap();
        headers.insert("accept", value("application/json, text/event-stream"));
        headers.insert("content-type", value("application/json"));
        match &self.era {
            Era::V2026 => {
                headers.insert("mcp-protocol-version", value(V2026));
                headers.insert("mcp-method", value(method));
                if let Some(name) = name {
                    headers.insert("mcp-name", value(name));
                }
            }
            Era::V2025(None) => {}
            Era::V2025(Some(session)) => {
                headers.insert("mcp-protocol-version", value(V2025));
                headers.insert("mcp-session-id", value(session));
            }
        }
        headers
    }

    async fn exchange(&self, request: &Request) -> (Reply, HeaderMap) {
        let body = self.body(request);
        match &self.transport {
            Transport::Http(_) => self.post(self.headers_of(request), body.to_string()).await,
            Transport::Stdio(stdio) => (stdio.ask(&body).await, HeaderMap::new()),
        }
    }

    fn headers_of(&self, request: &Request) -> HeaderMap {
        let mut headers = self.headers(&request.method, request.name().as_deref());
        if let Some(user) = &request.user {
            headers.insert("x-test-user", HeaderValue::from_str(&user.to_string()).unwrap());
        }
        headers
    }

    /// Sends a request over HTTP and returns once the response begins.
    pub(super) async fn send(&self, request: &Request) -> reqwest::Response {
        let Transport::Http(client) = &self.transport else {
            panic!("this is not HTTP");
        };
        let post = client.post(self.fixture.url()).headers(self.headers_of(request));
        let sent = post.body(self.body(request).to_string()).send();
        within("an HTTP response", sent).await.unwrap()
    }

    /// Posts any bytes, with these headers.
    pub(crate) async fn post(&self, headers: HeaderMap, body: impl Into<reqwest::Body>) -> (Reply, HeaderMap) {
        let Transport::Http(client) = &self.transport else {
            panic!("this is not HTTP");
        };
        let post = client.post(self.fixture.url()).headers(headers).body(body);
        let response = within("an HTTP response", post.send()).await.unwrap();
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let text = within("a body", response.text()).await.unwrap();
        let mut events: Vec<String> = text
            .lines()
            .filter_map(|line| Some(line.strip_prefix("data:")?.trim().to_owned()))
            .filter(|data| !data.is_empty())
            .collect();
        let is_stream = headers
            .get("content-type")
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let text = if is_stream {
            events.pop().unwrap_or_default()
        } else {
            text
        };
        let reply = Reply {
            status: Some(status),
            message: serde_json::from_str(&text).unwrap_or_default(),
            notifications: events.iter().map(|data| serde_json::from_str(data).unwrap()).collect(),
            text,
        };
        (reply, headers)
    }

    /// Sends a notification. Returns the HTTP status, where there is one.
    pub(crate) async fn notify(&self, method: &str, params: Value) -> Option<u16> {
        let body = json!({"jsonrpc": "2.0", "method": method, "params": params});
        match &self.transport {
            Transport::Http(_) => {
                let headers = self.headers(method, None);
                self.post(headers, body.to_string()).await.0.status
            }
            Transport::Stdio(stdio) => {
                stdio.send(&body).await;
                None
            }
        }
    }

    /// Everything that has come in on stdio, in its order.
    pub(crate) fn received(&self) -> Vec<Value> {
        match &self.transport {
            Transport::Stdio(stdio) => stdio.shared.received.lock().unwrap().clone(),
            Transport::Http(_) => panic!("this is not stdio"),
        }
    }

    /// Writes any line to the server's stdin.
    pub(crate) async fn write_line(&self, line: &str) {
        match &self.transport {
            Transport::Stdio(stdio) => stdio.write(line).await,
            Transport::Http(_) => panic!("this is not stdio"),
        }
    }

    /// Writes to the server's stdin as it is, without a line break.
    pub(crate) async fn write_bytes(&self, bytes: &[u8]) {
        match &self.transport {
            Transport::Stdio(stdio) => stdio.write_bytes(bytes).await,
            Transport::Http(_) => panic!("this is not stdio"),
        }
    }

    /// Closes the server's stdin.
    pub(crate) async fn close_stdin(&self) {
        match &self.transport {
            Transport::Stdio(stdio) => drop(stdio.stdin.lock().await.take()),
            Transport::Http(_) => panic!("this is not stdio"),
        }
    }
}

/// The client's ends of the pipes.
#[derive(Debug)]
pub(super) struct Stdio {
    stdin: tokio::sync::Mutex<Option<ChildStdin>>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Who waits for a response, by the id's JSON text.
    waiting: Mutex<HashMap<String, oneshot::Sender<String>>>,
    received: Mutex<Vec<Value>>,
}

impl Stdio {
    fn new(stdin: ChildStdin, stdout: ChildStdout) -> Self {
        let shared = Arc::new(Shared::default());
        let into = shared.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(stdout).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let message: Value = serde_json::from_str(&line).unwrap();
                let id = message.get("id").map(Value::to_string);
                into.received.lock().unwrap().push(message);
                let waiting = id.and_then(|id| into.waiting.lock().unwrap().remove(&id));
                if let Some(waiting) = waiting {
                    let _ = waiting.send(line);
                }
            }
            into.waiting.lock().unwrap().clear();
        });
        Self {
            stdin: tokio::sync::Mutex::new(Some(stdin)),
            shared,
        }
    }

    async fn send(&self, message: &Value) {
        self.write(&message.to_string()).await;
    }

    async fn write(&self, line: &str) {
        self.write_bytes(format!("{line}\n").as_bytes()).await;
    }

    async fn write_bytes(&self, bytes: &[u8]) {
        let mut stdin = self.stdin.lock().await;
        stdin.as_mut().unwrap().write_all(bytes).await.unwrap();
    }

    async fn ask(&self, body: &Value) -> Reply {
        let (answer, response) = oneshot::channel();
        self.shared
            .waiting
            .lock()
            .unwrap()
            .insert(body["id"].to_string(), answer);
        self.send(body).await;
        let text = within("a response on stdio", response)
            .await
            .unwrap_or_else(|_| panic!("the server went away without a response to {body}"));
        let message: Value = serde_json::from_str(&text).unwrap();
        let received = self.shared.received.lock().unwrap();
        let before = received.iter().take_while(|earlier| **earlier != message);
        let token = &body["params"]["_meta"]["progressToken"];
        Reply {
            status: None,
            notifications: before
                .filter(|earlier| earlier.get("method").is_some() && &earlier["params"]["progressToken"] == token)
                .cloned()
                .collect(),
            message,
            text,
        }
    }
}
