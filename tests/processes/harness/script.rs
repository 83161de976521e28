//! A server that does what a test says, in memory or over HTTP.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use mcp_tasks::client::{TaskClient, TaskClientBuilder};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::time::Instant;

/// A request, as the server got it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) params: Value,
    pub(crate) headers: HeaderMap,
    pub(crate) at: Instant,
    /// How many of this method came before.
    pub(crate) before: usize,
}

/// What the server does with it.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Result(Value),
    Error(i64, &'static str),
    /// Nothing, for ever.
    Silence,
    /// In memory: this line. Over HTTP: this body with status 200. `ID` is the request's.
    Text(String),
    /// An error with an HTTP status of its own.
    Refused(u16, i64),
    /// Over HTTP: this status, content type, headers and body.
    Http(u16, &'static str, Vec<(&'static str, &'static str)>, String),
    /// Over HTTP: these events and then, if it is so, nothing for ever.
    Events(Vec<String>, bool),
    /// Over HTTP: this much of a body that was announced as longer, and the connection is gone.
    Cut(&'static str, String),
    /// Over HTTP: a body of so many bytes.
    Large(&'static str, usize),
    /// Over HTTP: a byte now and then, for ever.
    Trickle(&'static str),
    /// Over HTTP: this, again and again, as fast as it is read.
    Flood(&'static str),
    /// In memory: these bytes, and then the reply.
    Bytes(Vec<u8>, Box<Reply>),
    /// Notifications, each after so many milliseconds, and then perhaps a result. In memory and over HTTP.
    Tell(Vec<(u64, Value)>, Option<Value>),
}

type Act = dyn Fn(&Asked) -> Reply + Send + Sync;

/// What a server does.
#[derive(Clone)]
pub(crate) struct Script {
    act: Arc<Act>,
    log: Arc<Mutex<Vec<Asked>>>,
    floods: Arc<AtomicUsize>,
}

/// A flood that goes on until this is dropped.
struct Flooding(Arc<AtomicUsize>);

impl Flooding {
    fn start(script: &Script) -> Self {
        script.floods.fetch_add(1, Ordering::SeqCst);
        Self(script.floods.clone())
    }
}

impl Drop for Flooding {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A server that runs, and what it was asked.
#[derive(Clone)]
pub(crate) struct Served {
    pub(crate) client: TaskClient,
    log: Arc<Mutex<Vec<Asked>>>,
}

impl Served {
    /// The requests of a method, in their order.
    pub(crate) fn asked(&self, method: &str) -> Vec<Asked> {
        let log = self.log.lock().unwrap();
        log.iter().filter(|asked| asked.method == method).cloned().collect()
    }

    /// The times between the requests of a method, in milliseconds.
    pub(crate) fn gaps(&self, method: &str) -> Vec<u64> {
        let asked = self.asked(method);
        let gaps = asked
            .windows(2)
            .map(|pair| (pair[1].at - pair[0].at).as_millis() as u64);
        gaps.collect()
    }
}

impl Script {
    /// A server of 2026-07-28 that answers like this, and to what is not like this says that it does not know it.
    pub(crate) fn new(act: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self {
            act: Arc::new(act),
            log: Arc::default(),
            floods: Arc::default(),
        }
    }

    /// How many requests there were.
    pub(crate) fn hits(&self) -> usize {
        self.log.lock().unwrap().len()
    }

    /// How many floods go on.
    pub(crate) fn floods(&self) -> usize {
        self.floods.load(Ordering::SeqCst)
    }

    /// One that hands out a task and shows it like this, one after the other, the last one again and again.
    pub(crate) fn of_task(shows: impl IntoIterator<Item = Value>) -> Self {
        let shows = Mutex::new(shows.into_iter().collect::<VecDeque<_>>());
        Self::new(move |asked| match asked.method.as_str() {
            "tools/call" => Reply::Result(created()),
            "tasks/get" => {
                let mut shows = shows.lock().unwrap();
                let next = if shows.len() > 1 {
                    shows.pop_front()
                } else {
                    shows.front().cloned()
                };
                Reply::Result(next.unwrap())
            }
            "tasks/update" | "tasks/cancel" => Reply::Result(json!({"resultType": "complete"})),
            _ => unknown(),
        })
    }

    /// The reply; to what has to be known for a connection, the script is asked too, and may leave it.
    fn reply(&self, method: &str, params: Value, headers: HeaderMap) -> Reply {
        let asked = {
            let mut log = self.log.lock().unwrap();
            let before = log.iter().filter(|asked| asked.method == method).count();
            let asked = Asked {
                method: method.to_owned(),
                params,
                headers,
                at: Instant::now(),
                before,
            };
            log.push(asked.clone());
            asked
        };
        match ((self.act)(&asked), method) {
            (Reply::Error(-32601, _), "server/discover") => Reply::Result(json!({
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
                "ttlMs": 0,
                "cacheScope": "private",
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "1"}},
            })),
            (reply, _) => reply,
        }
    }

    /// The server in memory, and a client of it.
    pub(crate) async fn in_memory(self, builder: TaskClientBuilder) -> Served {
        let log = self.log.clone();
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(far);
        let writer = Arc::new(tokio::sync::Mutex::new(writer));
        tokio::spawn(async move {
            let mut lines = BufReader::new(reader).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let message: Value = serde_json::from_str(&line).unwrap();
                let Some(id) = message.get("id").cloned() else { continue };
                let Some(method) = message["method"].as_str() else {
                    continue;
                };
                let reply = self.reply(method, message["params"].clone(), HeaderMap::new());
                let writer = writer.clone();
                tokio::spawn(async move {
                    let write = async |line: String| {
                        let _ = writer.lock().await.write_all(format!("{line}\n").as_bytes()).await;
                    };
                    let reply = match reply {
                        Reply::Bytes(bytes, then) => {
                            let _ = writer.lock().await.write_all(&bytes).await;
                            *then
                        }
                        other => other,
                    };
                    match reply {
                        Reply::Text(text) => write(text.replace("ID", &id.to_string())).await,
                        Reply::Tell(notifications, result) => {
                            for (after, notification) in notifications {
                                tokio::time::sleep(Duration::from_millis(after)).await;
                                write(notification_of(notification, &id).to_string()).await;
                            }
                            if let Some(result) = result {
                                write(response(&id, result).to_string()).await;
                            }
                        }
                        Reply::Result(result) => write(response(&id, result).to_string()).await,
                        Reply::Error(code, words) => write(error(&id, code, words).to_string()).await,
                        Reply::Refused(_, code) => write(error(&id, code, "no").to_string()).await,
                        Reply::Silence => {}
                        other => panic!("there is no {other:?} in memory"),
                    }
                });
            }
        });
        let (reader, writer) = tokio::io::split(near);
        let client = builder.connect_io(reader, writer).await.expect("the client starts");
        Served { client, log }
    }

    /// The server over HTTP: its URL.
    pub(crate) async fn listen(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let router = Router::new().fallback(serve).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        url
    }

    /// The server over HTTP, and a client of it.
    pub(crate) async fn over_http(self, builder: TaskClientBuilder) -> Served {
        let url = self.listen().await;
        let client = builder.connect_http(&url).await.expect("the client starts");
        let log = self.log;
        Served { client, log }
    }
}

fn notification_of(mut notification: Value, id: &Value) -> Value {
    notification["jsonrpc"] = json!("2.0");
    notification["params"]["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": id});
    notification
}

fn response(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn error(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

fn unknown() -> Reply {
    Reply::Error(-32601, "unknown method")
}

fn of_type(status: u16, content_type: &str, body: Body) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    (status, [(header::CONTENT_TYPE, content_type)], body).into_response()
}

async fn serve(State(script): State<Script>, method: Method, headers: HeaderMap, body: Bytes) -> Response {
    if method == Method::GET {
        return match script.reply("GET", Value::Null, headers) {
            Reply::Error(..) | Reply::Refused(..) => StatusCode::METHOD_NOT_ALLOWED.into_response(),
            reply => answered(&script, reply, Value::Null).await,
        };
    }
    let Ok(message) = serde_json::from_slice::<Value>(&body) else {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    };
    let Some(id) = message.get("id").cloned() else {
        return StatusCode::ACCEPTED.into_response();
    };
    let Some(method) = message["method"].as_str() else {
        return StatusCode::ACCEPTED.into_response();
    };
    let reply = script.reply(method, message["params"].clone(), headers);
    answered(&script, reply, id).await
}

/// The reply to a request, over HTTP.
async fn answered(script: &Script, reply: Reply, id: Value) -> Response {
    let json_body = |status, value: Value| of_type(status, "application/json", value.to_string().into());
    match reply {
        Reply::Result(result) => json_body(200, response(&id, result)),
        Reply::Error(code, words) => json_body(200, error(&id, code, words)),
        Reply::Refused(status, code) => json_body(status, error(&id, code, "no")),
        Reply::Silence => std::future::pending().await,
        Reply::Text(text) => of_type(200, "application/json", text.replace("ID", &id.to_string()).into()),
        Reply::Http(status, content_type, more, body) => {
            let mut response = of_type(status, content_type, body.replace("ID", &id.to_string()).into());
            for (name, value) in more {
                response.headers_mut().insert(name, value.parse().unwrap());
            }
            response
        }
        Reply::Events(events, goes_on) => {
            let events: String = events
                .iter()
                .map(|event| format!("data: {}\n\n", event.replace("ID", &id.to_string())))
                .collect();
            let first = futures::stream::iter([Ok::<_, std::io::Error>(Bytes::from(events))]);
            let body = match goes_on {
                true => Body::from_stream(first.chain(futures::stream::pending())),
                false => Body::from_stream(first),
            };
            of_type(200, "text/event-stream", body)
        }
        Reply::Cut(content_type, part) => {
            let part = Bytes::from(part.replace("ID", &id.to_string()));
            let broken = futures::stream::iter([Ok(part), Err(std::io::Error::other("cut"))]);
            of_type(200, content_type, Body::from_stream(broken))
        }
        Reply::Large(content_type, length) => {
            let piece = Bytes::from(vec![b'x'; 64 * 1024]);
            let start = match content_type {
                "application/json" => "\"",
                _ => "data: \"",
            };
            let pieces = std::iter::once(Bytes::from(start)).chain(std::iter::repeat_n(piece, length / (64 * 1024)));
            let body = Body::from_stream(futures::stream::iter(pieces.map(Ok::<_, std::io::Error>)));
            of_type(200, content_type, body)
        }
        Reply::Trickle(content_type) => {
            let bytes = futures::stream::unfold((), async |()| {
                tokio::time::sleep(Duration::from_millis(20)).await;
                Some((Ok::<_, std::io::Error>(Bytes::from(" ")), ()))
            });
            of_type(200, content_type, Body::from_stream(bytes))
        }
        Reply::Flood(event) => {
            let piece = Bytes::from(event.repeat(100));
            let pieces = futures::stream::unfold(Flooding::start(script), move |going_on| {
                let piece = piece.clone();
                async move { Some((Ok::<_, std::io::Error>(piece), going_on)) }
            });
            of_type(200, "text/event-stream", Body::from_stream(pieces))
        }
        Reply::Bytes(..) => panic!("there is no such reply over HTTP"),
        Reply::Tell(notifications, result) => {
            let mut events = VecDeque::from_iter(
                notifications
                    .into_iter()
                    .map(|(after, n)| (after, notification_of(n, &id))),
            );
            let goes_on = result.is_none();
            events.extend(result.map(|result| (0, response(&id, result))));
            let told = futures::stream::unfold(events, async |mut events| {
                let (after, event) = events.pop_front()?;
                tokio::time::sleep(Duration::from_millis(after)).await;
                Some((
                    Ok::<_, std::io::Error>(Bytes::from(format!("data: {event}\n\n"))),
                    events,
                ))
            });
            let body = match goes_on {
                true => Body::from_stream(told.chain(futures::stream::pending())),
                false => Body::from_stream(told),
            };
            of_type(200, "text/event-stream", body)
        }
    }
}

/// A task with these members besides.
pub(crate) fn task(status: &str, more: Value) -> Value {
    let mut task = Map::from_iter([
        ("resultType".to_owned(), json!("complete")),
        ("taskId".to_owned(), json!("t1")),
        ("status".to_owned(), json!(status)),
        ("createdAt".to_owned(), json!("2026-07-28T00:00:00Z")),
        ("lastUpdatedAt".to_owned(), json!("2026-07-28T00:00:00Z")),
        ("ttlMs".to_owned(), Value::Null),
        ("pollIntervalMs".to_owned(), json!(1000)),
    ]);
    if let Value::Object(more) = more {
        task.extend(more);
    }
    Value::Object(task)
}

/// What `tools/call` answers.
pub(crate) fn created() -> Value {
    task("working", json!({"resultType": "task"}))
}

/// A task that is worked on.
pub(crate) fn working() -> Value {
    task("working", json!({}))
}

/// A task that is done.
pub(crate) fn done() -> Value {
    task(
        "completed",
        json!({"result": {"content": [{"type": "text", "text": "done"}]}}),
    )
}
