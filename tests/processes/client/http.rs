//! What goes over HTTP.

use mcp_tasks::TaskId;
use mcp_tasks::client::TaskClient;
use serde_json::{Map, json};

use crate::client::harness::{Reply, Script, User, created, done, task, within, working};

/// Tasks, "Streamable HTTP: Routing Headers".
#[tokio::test]
async fn requests_name_their_task() {
    let requests = json!({"k": {"method": "roots/list"}});
    let script = Script::of_task([
        working(),
        task("input_required", json!({"inputRequests": requests})),
        done(),
    ]);
    let builder = TaskClient::builder().input(User::new()).bearer("secret");
    let served = script.over_http(builder).await;
    within("the result", served.client.call_and_wait("tool", json!({})))
        .await
        .unwrap();
    served.client.cancel(&TaskId::new("t1")).await.unwrap();
    for (method, name) in [
        ("tools/call", "tool"),
        ("tasks/get", "t1"),
        ("tasks/update", "t1"),
        ("tasks/cancel", "t1"),
    ] {
        let asked = served.asked(method);
        assert!(!asked.is_empty(), "{method}");
        for asked in asked {
            assert_eq!(asked.headers["mcp-name"], name, "{method}");
            assert_eq!(asked.headers["mcp-method"], method);
            assert_eq!(asked.headers["mcp-protocol-version"], "2026-07-28");
            assert_eq!(asked.headers["authorization"], "Bearer secret");
        }
    }
}

/// An id that is no header value goes out encoded (2026-07-28, "Header Encoding").
#[tokio::test]
async fn an_odd_id_is_encoded() {
    let script = Script::of_task([done()]);
    let served = script.over_http(TaskClient::builder()).await;
    served.client.get(&TaskId::new("tâche\n1")).await.unwrap_err();
    let name = served.asked("tasks/get")[0].headers["mcp-name"].clone();
    assert!(name.to_str().unwrap().starts_with("=?base64?"), "{name:?}");
    served.client.update(&TaskId::new(""), Map::new()).await.unwrap();
}

/// 2026-07-28: arguments that a tool wants in headers are known from its schema, so the list is read when it is needed.
#[tokio::test]
async fn a_call_whose_headers_differ_is_sent_again_after_the_list_was_read() {
    let script = Script::new(|asked| match asked.method.as_str() {
        "tools/list" => Reply::Result(json!({
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "tools": [{"name": "tool", "inputSchema": {
                "type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
            }}],
        })),
        "tools/call" => match asked.headers.get("mcp-param-region") {
            Some(region) if region == "eu" => Reply::Result(created()),
            _ => Reply::Refused(400, -32020),
        },
        "tasks/get" => Reply::Result(done()),
        _ => Reply::Error(-32601, "no"),
    });
    let served = script.over_http(TaskClient::builder()).await;
    let result = within(
        "the result",
        served.client.call_and_wait("tool", json!({"region": "eu"})),
    )
    .await;
    assert_eq!(result.unwrap().text(), "done");
    assert_eq!(served.asked("tools/call").len(), 2);
    // A server that is not content with it is not asked for ever.
    served.client.call("tool", json!({"region": "us"})).await.unwrap_err();
    assert_eq!(served.asked("tools/call").len(), 4);
}

/// A token is in no error.
#[tokio::test]
async fn no_error_tells_a_secret() {
    let builder = TaskClient::builder().bearer("s3cret");
    let error = builder
        .connect_http("http://user:s3cret@127.0.0.1:1/mcp?token=s3cret")
        .await
        .unwrap_err();
    let mut text = format!("{error} {error:?}");
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text.push_str(&format!("{cause} {cause:?}"));
        source = cause.source();
    }
    assert!(!text.contains("s3cret"), "{text}");
}
