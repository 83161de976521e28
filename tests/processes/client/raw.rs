//! Answers that are no HTTP, or stop in the middle of it: an error, and another attempt where that may help.

use std::time::Duration;

use mcp_tasks::client::{ClientError, Pacing, TaskClient};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::client::harness::{created, done, within};

/// What is written in answer to a request, and what becomes of the connection.
#[derive(Debug, Clone, Copy)]
struct Raw {
    bytes: &'static str,
    /// Written again and again.
    for_ever: bool,
    /// Left open when it is written, and nothing comes any more.
    open: bool,
}

const fn closed(bytes: &'static str) -> Raw {
    Raw {
        bytes,
        for_ever: false,
        open: false,
    }
}

const RAW: &[Raw] = &[
    closed(""),
    closed("\0"),
    closed("no HTTP at all\r\n\r\n"),
    closed("HTTP/1.1"),
    closed("HTTP/1.1 200 OK\r\nContent-Ty"),
    closed("HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n"),
    closed("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n"),
    closed("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"jsonrpc\":"),
    closed("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{\"jsonrpc\":\"2.0\"}"),
    closed("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}"),
    closed("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: -1\r\n\r\n{}"),
    closed("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99999999999999999999999\r\n\r\n{}"),
    closed(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n{}",
    ),
    closed("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{\"a\""),
    closed("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n6\r\ndata: \r\n"),
    Raw {
        bytes: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{",
        for_ever: false,
        open: true,
    },
    Raw {
        bytes: "HTTP/1.1 100 Continue\r\n\r\n",
        for_ever: true,
        open: true,
    },
    Raw {
        bytes: "X",
        for_ever: true,
        open: true,
    },
];

/// A request's body, if there is one.
async fn request(connection: &mut BufReader<TcpStream>) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if connection.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body).await.ok()?;
    serde_json::from_slice(&body).ok()
}

async fn answer(connection: &mut BufReader<TcpStream>, status: &str, body: &Value) {
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let _ = connection.write_all(format!("{head}{body}").as_bytes()).await;
}

/// A server that answers requests of one method like this, the first so many of them, and the others as it should.
async fn server(method: &'static str, raw: Raw, times: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let answered = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let answered = answered.clone();
            tokio::spawn(async move {
                let mut connection = BufReader::new(connection);
                while let Some(asked) = request(&mut connection).await {
                    let is_wrong =
                        asked["method"] == method && answered.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < times;
                    if is_wrong {
                        let mut written = connection.write_all(raw.bytes.as_bytes()).await;
                        while raw.for_ever && written.is_ok() {
                            written = connection.write_all(raw.bytes.as_bytes()).await;
                        }
                        if raw.open {
                            std::future::pending::<()>().await;
                        }
                        return;
                    }
                    let result = match asked["method"].as_str() {
                        Some("server/discover") => json!({
                            "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0,
                            "capabilities": {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
                            "cacheScope": "private",
                        }),
                        Some("tools/call") => created(),
                        Some("tasks/get") => done(),
                        _ => {
                            let error = json!({"code": -32601, "message": "no"});
                            let body = json!({"jsonrpc": "2.0", "id": asked["id"], "error": error});
                            answer(&mut connection, "404 Not Found", &body).await;
                            continue;
                        }
                    };
                    let body = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
                    answer(&mut connection, "200 OK", &body).await;
                }
            });
        }
    });
    url
}

async fn client(url: &str) -> TaskClient {
    let pacing = Pacing::default()
        .first_poll(Duration::from_millis(1))
        .request_timeout(Duration::from_secs(2))
        .call_timeout(Some(Duration::from_secs(2)))
        .retry_timeout(Duration::from_secs(2));
    let connecting = TaskClient::builder().pacing(pacing).connect_http(url);
    within("the connection", connecting).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_answered_by_no_http_is_an_error() {
    for raw in RAW {
        let client = client(&server("tools/call", *raw, usize::MAX).await).await;
        let what = format!("{raw:?}");
        let error = within(&what, client.call("tool", json!({}))).await.unwrap_err();
        let is_right = matches!(error, ClientError::Transport { .. } | ClientError::Protocol { .. });
        assert!(is_right, "{what}: {error:?}");
    }
}

/// A look may be taken again, and is where the connection was the trouble.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_that_is_answered_by_no_http_is_taken_again() {
    for raw in RAW {
        let client = client(&server("tasks/get", *raw, 1).await).await;
        let what = format!("{raw:?}");
        match within(&what, client.call_and_wait("tool", json!({}))).await {
            Ok(result) => assert_eq!(result.text(), "done", "{what}"),
            // HTTP it was, and no answer.
            Err(ClientError::Protocol { task, .. } | ClientError::Transport { task, .. }) => {
                assert!(raw.bytes.starts_with("HTTP/1.1 ") && task.is_some(), "{what}");
            }
            Err(error) => panic!("{what}: {error:?}"),
        }
    }
}
