//! Headers that are good, odd and wrong.

use super::{Pair, Raw, find};

fn good() -> Vec<Raw> {
    vec![
        Raw::good("tasks/get", "@completed@", r#""taskId":"@completed@""#),
        Raw::good(
            "tasks/update",
            "@completed@",
            r#""taskId":"@completed@","inputResponses":{}"#,
        ),
        Raw::good("tasks/cancel", "@completed@", r#""taskId":"@completed@""#),
        Raw::good(
            "tools/call",
            "plain",
            r#""name":"plain","arguments":{"text":"x","times":1}"#,
        ),
        Raw::good(
            "tools/call",
            "optional",
            r#""name":"optional","arguments":{"text":"x","times":1}"#,
        ),
        Raw::good(
            "subscriptions/listen",
            "",
            r#""notifications":{"toolsListChanged":true}"#,
        ),
    ]
}

const VALUES: &[(&str, &[&[&[u8]]])] = &[
    (
        "accept",
        &[
            &[],
            &[b""],
            &[b"*/*"],
            &[b"application/json"],
            &[b"text/event-stream"],
            &[b"text/event-stream,application/json"],
            &[b"application/json", b"text/event-stream"],
            &[b"APPLICATION/JSON , Text/Event-Stream"],
            &[b"application/json;q=0, text/event-stream"],
            &[b"application/json;q=0.0001, text/event-stream;q=1"],
            &[b"application/json;q=x, text/event-stream;Q=0.000"],
            &[b"application/json; charset=utf-8, text/event-stream;v"],
            &[b"application/json;a=\"b,c\", text/event-stream"],
            &[b"application/json;a=\"b, text/event-stream"],
            &[b"application/json\xE9, text/event-stream"],
            &[b"application/jsonx, text/event-stream"],
            &[b"application/*, text/*"],
        ],
    ),
    (
        "content-type",
        &[
            &[],
            &[b""],
            &[b"text/plain"],
            &[b"application/json; charset=utf-8"],
            &[b" application/json"],
            &[b"APPLICATION/JSON;x"],
            &[b"application/json, text/plain"],
            &[b"application/json", b"text/plain"],
            &[b"text/plain", b"application/json"],
            &[b"application/jsonp"],
            &[b"application/json\xE9"],
        ],
    ),
    (
        "mcp-protocol-version",
        &[
            &[],
            &[b""],
            &[b"2025-11-25"],
            &[b"2025-03-26"],
            &[b"2026-07-28 "],
            &[b"2026-07-28", b"2026-07-28"],
            &[b"2026-07-28", b"2025-11-25"],
            &[b"2025-11-25", b"2026-07-28"],
            &[b"2099-01-01"],
            &[b"2026-07-28\xE9"],
            &[b"draft"],
        ],
    ),
    (
        "mcp-method",
        &[
            &[],
            &[b""],
            &[b"tasks/get"],
            &[b"tasks/update"],
            &[b"tasks/cancel"],
            &[b"tools/call"],
            &[b"TASKS/GET"],
            &[b"tools/list"],
            &[b"subscriptions/listen"],
            &[b"tasks/get", b"tasks/get"],
            &[b"tools/call", b"tasks/get"],
            &[b"=?base64?dGFza3MvZ2V0?="],
            &[b"tasks/get\xE9"],
        ],
    ),
    (
        "mcp-name",
        &[
            &[],
            &[b""],
            &[b"plain"],
            &[b"PLAIN"],
            &[b"optional"],
            &[b"@completed@"],
            &[b"@COMPLETED@"],
            &[b"@working@"],
            &[b"@completed@", b"@completed@"],
            &[b"plain", b"optional"],
            &[b" @completed@ "],
            &[b"=?base64?cGxhaW4=?="],
            &[b"=?base64?cGxhaW4?="],
            &[b"=?base64?!?="],
            &[b"=?base64?"],
            &[b"plain\xE9"],
        ],
    ),
    (
        "host",
        &[
            &[b"localhost"],
            &[b"LOCALHOST:80"],
            &[b"127.0.0.1"],
            &[b"127.0.0.1:1"],
            &[b"[::1]:80"],
            &[b"[::1]"],
            &[b"localhost:"],
            &[b"localhost:99999"],
            &[b"localhost:x"],
            &[b"localhost."],
            &[b"localhost.evil.example"],
            &[b"evil.example"],
            &[b"me@localhost"],
            &[b"localhost:80@evil.example"],
            &[b"127.0.0.2"],
            &[b"0x7f000001"],
            &[b"local host"],
        ],
    ),
    (
        "origin",
        &[
            &[b"http://localhost"],
            &[b"http://localhost:6274"],
            &[b"HTTP://LocalHost:6274"],
            &[b"https://127.0.0.1"],
            &[b"http://[::1]:9"],
            &[b"http://localhost/"],
            &[b"http://localhost/path"],
            &[b"http://localhost:"],
            &[b"http://localhost:99999"],
            &[b"http://me@localhost"],
            &[b"http://localhost.evil.example"],
            &[b"http://evil.example"],
            &[b"ftp://localhost"],
            &[b"localhost"],
            &[b"null"],
            &[b"NULL"],
            &[b""],
            &[b"http://localhost", b"http://evil.example"],
            &[b"http://evil.example", b"http://localhost"],
            &[b"http://localhost\xE9"],
        ],
    ),
    ("mcp-session-id", &[&[b"x"]]),
    ("mcp-param-text", &[&[b"x"], &[b"y"]]),
    ("last-event-id", &[&[b"1"]]),
    ("content-encoding", &[&[b"gzip"]]),
    ("expect", &[&[b""]]),
];

/// 2026-07-28, "Security & Endpoint", "Sending Messages" and "Request Metadata".
#[tokio::test]
async fn headers_of_every_shape() {
    let mut pair = Pair::start(&[]).await;
    pair.fill().await;
    let mut requests = Vec::new();
    for good in good() {
        for (name, all) in VALUES {
            for values in *all {
                requests.push(good.with_header(name, values));
            }
        }
        requests.push(good);
    }
    assert!(requests.len() > 500, "{}", requests.len());
    // Both of the values of a header can be told from the body that it goes with.
    assert!(requests.iter().any(|raw| find(&raw.body, b"@completed@").is_some()));
    pair.compare(requests).await;
}

/// Hosts and origins that are let in by configuration.
#[tokio::test]
async fn configured_hosts_and_origins() {
    let pair = Pair::start(&[
        (
            "MCP_TASKS_HTTP_ALLOWED_HOSTS",
            "tasks.example:8443, [::1]:9, bare.example, Weird_Host",
        ),
        (
            "MCP_TASKS_HTTP_ALLOWED_ORIGINS",
            "https://app.example:443, http://any.example:*, https://bare.example, null",
        ),
    ])
    .await;
    let call = Raw::good(
        "tools/call",
        "plain",
        r#""name":"plain","arguments":{"text":"x","times":1}"#,
    );
    let mut requests = Vec::new();
    for host in [
        "tasks.example:8443",
        "tasks.example",
        "TASKS.example:8443",
        "[::1]:9",
        "[::1]",
        "bare.example",
        "bare.example:1",
        "weird_host",
        "localhost",
    ] {
        let hosted = call.with_header("host", &[host.as_bytes()]);
        for origin in [
            "https://app.example",
            "https://app.example:443",
            "https://app.example:444",
            "http://app.example:443",
            "http://any.example",
            "http://any.example:1",
            "https://any.example",
            "https://bare.example",
            "https://bare.example:5",
            "null",
            "Null",
            "nonsense",
        ] {
            requests.push(hosted.with_header("origin", &[origin.as_bytes()]));
        }
        requests.push(hosted);
    }
    pair.compare(requests).await;
}
