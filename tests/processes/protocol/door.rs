//! What is turned away at the door of the HTTP server.

use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::{Value, json};

use crate::protocol::harness::{Request, V2026, Wire};

fn discover() -> String {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "server/discover",
        "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": V2026,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }},
    })
    .to_string()
}

async fn status(wire: &Wire, headers: HeaderMap) -> u16 {
    wire.post(headers, discover()).await.0.status.unwrap()
}

fn with(headers: &HeaderMap, name: &'static str, value: &str) -> HeaderMap {
    let mut headers = headers.clone();
    headers.insert(name, HeaderValue::from_str(value).unwrap());
    headers
}

/// 2026-07-28, "Security & Endpoint": a page from elsewhere is refused with HTTP 403, whatever name it came under.
#[tokio::test]
async fn a_foreign_origin_or_host_is_forbidden() {
    let wire = Wire::http().await;
    let headers = wire.headers("server/discover", None);
    let authority = wire.fixture.authority().to_owned();
    for origin in [
        "http://evil.example",
        "https://127.0.0.1.evil.example",
        "http://localhost.evil.example:80",
        "null",
    ] {
        assert_eq!(status(&wire, with(&headers, "origin", origin)).await, 403, "{origin}");
    }
    for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8080"] {
        assert_eq!(status(&wire, with(&headers, "host", host)).await, 403, "{host}");
    }
    assert_eq!(status(&wire, headers.clone()).await, 200);
    for origin in [
        format!("http://{authority}"),
        "http://localhost:6274".to_owned(),
        "http://localhost".to_owned(),
    ] {
        assert_eq!(status(&wire, with(&headers, "origin", &origin)).await, 200, "{origin}");
    }
    for host in ["localhost", "localhost:80", "[::1]:80"] {
        assert_eq!(status(&wire, with(&headers, "host", host)).await, 200, "{host}");
    }
}

/// RFC 9110, section 12.5.1: a client that accepts everything is served.
#[tokio::test]
async fn a_client_that_accepts_everything_is_served() {
    let wire = Wire::http().await;
    let headers = wire.headers("server/discover", None);
    for (accept, expected) in [
        ("*/*", 200),
        ("text/html, */*;q=0.8", 200),
        ("application/json", 406),
        ("*/*;q=0", 406),
    ] {
        assert_eq!(
            status(&wire, with(&headers, "accept", accept)).await,
            expected,
            "{accept}"
        );
    }
    // Also where it is answered in front of rmcp.
    let id = wire.create("wait", json!({"gate": "shut"})).await;
    let get = wire.body(&Request::get(&id)).to_string();
    let headers = with(&wire.headers("tasks/get", Some(&id)), "accept", "*/*");
    assert_eq!(wire.post(headers, get).await.0.result()["status"], "working");
}

/// Other names are let in by configuration, and then the loopback ones are not.
#[tokio::test]
async fn configured_hosts_and_origins_are_served() {
    let wire = Wire::http_with(&[
        ("MCP_TASKS_HTTP_ALLOWED_HOSTS", "tasks.example, tasks.example:8443"),
        (
            "MCP_TASKS_HTTP_ALLOWED_ORIGINS",
            "https://app.example:443, https://plain.example, https://any.example:*",
        ),
    ])
    .await;
    let headers = wire.headers("server/discover", None);
    assert_eq!(status(&wire, headers.clone()).await, 403);
    let headers = with(&headers, "host", "tasks.example");
    assert_eq!(status(&wire, headers.clone()).await, 200);
    // RFC 6454, section 4: an origin without a port has that of its scheme.
    for origin in [
        "https://app.example",
        "https://plain.example",
        "https://plain.example:443",
        "https://any.example:8443",
    ] {
        assert_eq!(status(&wire, with(&headers, "origin", origin)).await, 200, "{origin}");
    }
    for origin in [
        "http://localhost:6274",
        "https://plain.example:8443",
        "http://plain.example",
    ] {
        assert_eq!(status(&wire, with(&headers, "origin", origin)).await, 403, "{origin}");
    }
    assert!(!wire.fixture.log().contains("without a port"), "{}", wire.fixture.log());
}

/// 2026-07-28, "Backward Compatibility": the GET stream and sessions are gone.
#[tokio::test]
async fn get_and_delete_are_not_allowed_in_2026_07_28() {
    let wire = Wire::http().await;
    let client = reqwest::Client::new();
    let headers = wire.headers("server/discover", None);
    let get = client
        .get(wire.fixture.url())
        .headers(headers.clone())
        .send()
        .await
        .unwrap();
    assert_eq!(get.status(), 405);
    assert_eq!(get.headers()["allow"], "POST");
    let put = client.put(wire.fixture.url()).headers(headers).send().await.unwrap();
    assert_eq!(put.status(), 405);
}

/// A body that is no JSON-RPC message is refused with HTTP 400 or 415 before any tool sees it.
#[tokio::test]
async fn an_undecodable_body_is_refused_at_the_door() {
    let wire = Wire::http().await;
    let headers = wire.headers("tools/call", Some("plain"));
    let call = Request::call("plain", json!({"text": "TEXT", "times": 1}));
    let good = json!({"jsonrpc": "2.0", "id": 1, "method": call.method, "params": {
        "name": "plain", "arguments": {"text": "TEXT", "times": 1}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": V2026,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }})
    .to_string();
    let surrogate = good.replace("TEXT", r"a\ud800b");
    let mut latin = good.clone().into_bytes();
    let place = good.find("TEXT").unwrap();
    latin[place] = 0xE9;
    for body in [
        Vec::new(),
        b"{".to_vec(),
        b"[]".to_vec(),
        b"null".to_vec(),
        b"{\"jsonrpc\":\"1.0\"}".to_vec(),
        good.as_bytes()[..good.len() - 1].to_vec(),
        surrogate.into_bytes(),
        latin,
    ] {
        let shown = String::from_utf8_lossy(&body).into_owned();
        let (reply, _) = wire.post(headers.clone(), body).await;
        assert!(matches!(reply.status, Some(400 | 415)), "{shown}: {reply:?}");
    }
    let (text, _) = wire
        .post(with(&headers, "content-type", "text/plain"), good.clone())
        .await;
    assert_eq!(text.status, Some(415));
    assert_eq!(wire.seen().await.journal.len(), 0);

    // A NUL and a pair of surrogates are text like any other.
    let (reply, _) = wire.post(headers, good.replace("TEXT", r"a\u0000b\ud83d\ude00")).await;
    assert_eq!(reply.words(), "a\0b😀");
}

/// 2026-07-28, "Protocol Version Header": the header and the body agree, or the request is refused.
#[tokio::test]
async fn versions_that_disagree_or_are_unknown_are_refused() {
    let wire = Wire::http().await;
    let headers = wire.headers("server/discover", None);
    let (reply, _) = wire
        .post(with(&headers, "mcp-protocol-version", "2025-11-25"), discover())
        .await;
    reply.refused(-32020, 400);
    let unknown = discover().replace(V2026, "2099-01-01");
    let (reply, _) = wire
        .post(with(&headers, "mcp-protocol-version", "2099-01-01"), unknown)
        .await;
    reply.refused(-32022, 400);
    let supported = &reply.error()["data"]["supported"];
    assert!(supported.as_array().unwrap().contains(&Value::from(V2026)), "{reply:?}");
}
