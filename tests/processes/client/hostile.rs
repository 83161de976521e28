//! Servers that misbehave: an error, and never a panic, a hang or a hot loop.
//!
//! Each test has a limit that is far more than what it takes, so that only a hang fails by it.

use std::time::Duration;

use futures::StreamExt;
use mcp_tasks::client::{ClientError, Pacing, TaskClient, TaskClientBuilder};
use serde_json::{Value, json};

use crate::client::harness::{Reply, Script, created, done, until, within};

/// Over HTTP time is real, so everything is a hundred times as fast.
fn hasty() -> TaskClientBuilder {
    let pacing = Pacing::default()
        .first_poll(Duration::from_millis(1))
        .bounds(Duration::from_millis(10), Duration::from_millis(20))
        .request_timeout(Duration::from_secs(2))
        .call_timeout(Some(Duration::from_secs(2)))
        .retry_timeout(Duration::from_secs(3));
    TaskClient::builder().pacing(pacing)
}

/// What is wrong with an answer, whatever it answers.
fn wrong_answers() -> Vec<Reply> {
    let text = |text: &str| Reply::Text(text.to_owned());
    let event = |text: &str, goes_on| Reply::Events(vec![text.to_owned()], goes_on);
    vec![
        text(""),
        text("null"),
        text("[]"),
        text("{}"),
        text("truncat"),
        text(r#"{"jsonrpc":"2.0","id":ID}"#),
        text(r#"{"jsonrpc":"2.0","id":ID,"result":"#),
        text(r#"{"jsonrpc":"2.0","id":ID,"result":null}"#),
        text(r#"{"jsonrpc":"2.0","id":ID,"result":7}"#),
        text(r#"{"jsonrpc":"2.0","id":ID,"result":[{}]}"#),
        text(r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":[]}}"#),
        text(r#"{"jsonrpc":"2.0","id":ID,"error":null}"#),
        text(r#"{"jsonrpc":"2.0","id":ID,"error":{"code":"x","message":7}}"#),
        text(r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"broken"}}"#),
        text(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"broken"}}"#),
        text(r#"{"jsonrpc":"2.0","id":"another","result":{"resultType":"novel"}}"#),
        text(r#"{"jsonrpc":"1.0","id":ID,"result":{}}"#),
        text(&"[".repeat(100_000)),
        text(&format!(
            "{}{}",
            r#"{"jsonrpc":"2.0","id":ID,"result":"#,
            r#"{"a":"#.repeat(100_000)
        )),
        Reply::Result(json!({})),
        Reply::Result(json!({"resultType": "complete", "content": {"a": 1}})),
        Reply::Refused(400, -32603),
        Reply::Refused(500, -32603),
        Reply::Http(200, "text/html", vec![], "<html>".to_owned()),
        Reply::Http(204, "text/plain", vec![], String::new()),
        Reply::Http(202, "text/plain", vec![], String::new()),
        Reply::Http(202, "application/json", vec![], String::new()),
        Reply::Http(
            200,
            "application/json",
            vec![("content-encoding", "gzip")],
            "\u{1f}\u{8}".to_owned(),
        ),
        Reply::Http(
            200,
            "text/event-stream",
            vec![("content-encoding", "br")],
            "\u{1f}\u{8}".to_owned(),
        ),
        Reply::Http(200, "application/json;charset=\u{7f}", vec![], "{".to_owned()),
        Reply::Http(302, "text/plain", vec![("location", "/elsewhere")], String::new()),
        Reply::Http(303, "text/plain", vec![("location", "/mcp")], String::new()),
        Reply::Http(307, "text/plain", vec![], String::new()),
        Reply::Http(
            307,
            "text/plain",
            vec![("location", "http://127.0.0.1:1/mcp")],
            String::new(),
        ),
        Reply::Http(
            308,
            "text/plain",
            vec![("location", "gopher://example.com/")],
            String::new(),
        ),
        Reply::Http(401, "application/json", vec![], "{}".to_owned()),
        Reply::Http(401, "text/plain", vec![("www-authenticate", "Bearer")], String::new()),
        Reply::Http(403, "text/html", vec![], "<html>".to_owned()),
        Reply::Http(404, "text/html", vec![], "<html>".to_owned()),
        Reply::Http(500, "text/html", vec![], "<html>".to_owned()),
        Reply::Http(503, "application/json", vec![("retry-after", "soon")], "{".to_owned()),
        Reply::Silence,
        Reply::Cut("application/json", r#"{"jsonrpc":"2.0","id":ID,"result":"#.to_owned()),
        Reply::Cut("text/event-stream", r#"data: {"jsonrpc":"2.0","id":ID"#.to_owned()),
        Reply::Large("application/json", 20 << 20),
        Reply::Large("text/event-stream", 20 << 20),
        Reply::Trickle("application/json"),
        Reply::Trickle("text/event-stream"),
        Reply::Events(vec![], false),
        Reply::Events(vec![], true),
        // A stream that wants to be gone on with at once, again and again.
        Reply::Http(
            200,
            "text/event-stream",
            vec![],
            "id: 1\nretry: 0\ndata:\n\n".to_owned(),
        ),
        Reply::Http(
            200,
            "text/event-stream",
            vec![],
            "event: ping\ndata: 1\n\n: and so on\n\n".to_owned(),
        ),
        Reply::Http(200, "text/event-stream", vec![], "data: {\"jsonrpc\"".to_owned()),
        event("null", false),
        event("not json", true),
        event(r#"{"jsonrpc":"2.0","id":ID,"result":null}"#, true),
        event(r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"task"}}"#, false),
        event(r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"broken"}}"#, true),
        event(r#"{"jsonrpc":"2.0","id":"another","result":{}}"#, false),
        event(r#"{"jsonrpc":"2.0","method":"notifications/odd"}"#, true),
    ]
}

/// Runs a case for each of the answers, some at a time.
async fn each<F: Future<Output = ()>>(answers: impl IntoIterator<Item = Reply>, case: impl Fn(Reply) -> F) {
    futures::stream::iter(answers).for_each_concurrent(8, case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_answer_to_a_call_is_an_error() {
    each(wrong_answers(), |wrong| async move {
        let answer = wrong.clone();
        let script = Script::new(move |asked| match asked.method.as_str() {
            "tools/call" => answer.clone(),
            _ => Reply::Error(-32601, "no"),
        });
        let served = script.over_http(hasty()).await;
        let what = format!("{wrong:.200?}");
        let error = within(&what, served.client.call("tool", json!({}))).await.unwrap_err();
        assert!(!error.to_string().is_empty(), "{what}");
        // A call may have been heard: it is not sent again. Nor is its stream gone on with, which 2026-07-28 does not have.
        assert_eq!(served.asked("tools/call").len(), 1, "{what}");
        assert_eq!(served.asked("GET").len(), 0, "{what}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_answer_to_a_look_is_an_error() {
    each(wrong_answers(), |wrong| async move {
        let answer = wrong.clone();
        let script = Script::new(move |asked| match asked.method.as_str() {
            "tools/call" => Reply::Result(created()),
            "tasks/get" => answer.clone(),
            _ => Reply::Error(-32601, "no"),
        });
        let served = script.over_http(hasty()).await;
        let what = format!("{wrong:.200?}");
        let error = within(&what, served.client.call_and_wait("tool", json!({})))
            .await
            .unwrap_err();
        match &error {
            ClientError::Transport { task, .. } | ClientError::Protocol { task, .. } => {
                assert_eq!(task.as_ref().unwrap().id().as_str(), "t1", "{what}");
            }
            ClientError::Refused(_) => {}
            other => panic!("{what}: {other:?}"),
        }
        // Half a second, doubling, in three seconds of patience.
        assert!(served.asked("tasks/get").len() <= 6, "{what}");
    })
    .await;
}

/// One wrong answer among right ones is looked past, where another attempt may help.
#[tokio::test(flavor = "multi_thread")]
async fn what_passes_is_waited_out() {
    for passing in [
        Reply::Http(503, "text/html", vec![], "<html>".to_owned()),
        Reply::Http(502, "text/plain", vec![], String::new()),
        Reply::Http(429, "application/json", vec![("retry-after", "0")], "{}".to_owned()),
        Reply::Cut("application/json", r#"{"jsonrpc":"2.0","#.to_owned()),
        Reply::Events(vec![], false),
        Reply::Silence,
    ] {
        let answer = passing.clone();
        let script = Script::new(move |asked| match asked.method.as_str() {
            "tools/call" => Reply::Result(created()),
            "tasks/get" if asked.before == 0 => answer.clone(),
            "tasks/get" => Reply::Result(done()),
            _ => Reply::Error(-32601, "no"),
        });
        let served = script.over_http(hasty()).await;
        let what = format!("{passing:?}");
        let result = within(&what, served.client.call_and_wait("tool", json!({}))).await;
        assert_eq!(result.unwrap().text(), "done", "{what}");
    }
}

/// RFC 9110, section 15.4: a request goes where the server says if it stays the server's, and does so a few times.
#[tokio::test(flavor = "multi_thread")]
async fn redirects_are_followed_within_the_server_and_not_for_ever() {
    for status in [307, 308] {
        let redirected = Reply::Http(status, "text/plain", vec![("location", "/mcp/")], String::new());
        let script = Script::new(move |asked| match asked.method.as_str() {
            "tools/call" if asked.before == 0 => redirected.clone(),
            "tools/call" => Reply::Result(created()),
            "tasks/get" if asked.before < 3 => redirected.clone(),
            "tasks/get" => Reply::Result(done()),
            _ => Reply::Error(-32601, "no"),
        });
        let served = script.over_http(hasty().bearer("secret")).await;
        let result = within("the result", served.client.call_and_wait("tool", json!({"a": 1}))).await;
        assert_eq!(result.unwrap().text(), "done");
        let asked = &served.asked("tools/call")[1];
        assert_eq!(asked.params["arguments"], json!({"a": 1}));
        assert_eq!(asked.headers["authorization"], "Bearer secret");
    }
    let script = Script::new(|asked| match asked.method.as_str() {
        "tools/call" => Reply::Http(307, "text/plain", vec![("location", "/mcp")], String::new()),
        _ => Reply::Error(-32601, "no"),
    });
    let served = script.over_http(hasty()).await;
    let error = within("the end", served.client.call("tool", json!({})))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("HTTP 307"), "{error}");
    assert_eq!(served.asked("tools/call").len(), 6);
}

/// What is meant for a server goes to no other, wherever it sends it.
#[tokio::test(flavor = "multi_thread")]
async fn another_server_is_told_nothing() {
    let other = Script::new(|_| Reply::Result(done()));
    let url: &'static str = Box::leak(other.listen().await.into_boxed_str());
    for status in [301, 302, 303, 307, 308] {
        let script = Script::new(move |asked| match asked.method.as_str() {
            "tools/call" => Reply::Http(status, "text/plain", vec![("location", url)], String::new()),
            _ => Reply::Error(-32601, "no"),
        });
        let served = script.over_http(hasty()).await;
        let error = within("the end", served.client.call("tool", json!({})))
            .await
            .unwrap_err();
        assert!(matches!(error, ClientError::Transport { .. }), "{error:?}");
    }
    assert_eq!(other.hits(), 0);
}

/// The same answer twice, or one to no request, is passed over.
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_come_twice_do_no_harm() {
    let twice = |result: Value| {
        let answer = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        let old = r#"{"jsonrpc":"2.0","id":0,"result":{}}"#.to_owned();
        Reply::Events(vec![old, answer("ID"), answer("ID"), answer("99999")], false)
    };
    let script = Script::new(move |asked| match (asked.method.as_str(), asked.before) {
        ("tools/call", _) => twice(created()),
        ("tasks/get", 0..4) => twice(crate::client::harness::working()),
        ("tasks/get", _) => twice(done()),
        ("tasks/cancel", _) => twice(json!({"resultType": "complete", "_meta": {"a": 1}})),
        _ => Reply::Error(-32601, "no"),
    });
    let served = script.over_http(hasty()).await;
    for _ in 0..3 {
        let result = within("the result", served.client.call_and_wait("tool", json!({}))).await;
        assert_eq!(result.unwrap().text(), "done");
        served.client.cancel(&mcp_tasks::TaskId::new("t1")).await.unwrap();
    }
}

/// Our ids are numbers; servers that send them back as text or as `1.0` mean the same.
#[tokio::test(flavor = "multi_thread")]
async fn ids_come_back_in_other_spellings() {
    for spelling in [r#""ID""#, "ID.0", "ID"] {
        let answer = move |result: Value| format!(r#"{{"jsonrpc":"2.0","id":{spelling},"result":{result}}}"#);
        let script = move |as_events| {
            Script::new(move |asked| {
                let answer = match asked.method.as_str() {
                    "tools/call" => answer(created()),
                    "tasks/get" => answer(done()),
                    _ => return Reply::Error(-32601, "no"),
                };
                match as_events {
                    true => Reply::Events(vec![answer], true),
                    false => Reply::Text(answer),
                }
            })
        };
        for served in [
            script(true).over_http(hasty()).await,
            script(false).over_http(hasty()).await,
            script(false).in_memory(hasty()).await,
        ] {
            let result = within(spelling, served.client.call_and_wait("tool", json!({}))).await;
            assert_eq!(result.unwrap().text(), "done", "{spelling}");
        }
    }
}

/// A stream without an end, as fast as it can, ends with the request's time; and is not read on.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_ends_with_the_request() {
    for event in [
        ": still here\n\n",
        "\n",
        "id: 7\nretry: 0\n\n",
        "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n\n",
        "data: {\"jsonrpc\":\"2.0\",\"id\":4711,\"result\":{}}\n\n",
    ] {
        let script = Script::new(move |asked| match asked.method.as_str() {
            "tools/call" => Reply::Flood(event),
            _ => Reply::Error(-32601, "no"),
        });
        let served = script.clone().over_http(hasty()).await;
        let error = within(event, served.client.call("tool", json!({}))).await.unwrap_err();
        assert!(matches!(error, ClientError::Transport { .. }), "{event:?}: {error:?}");
        until("the stream is not read", async || (script.floods() == 0).then_some(())).await;
        served.client.tools().await.unwrap_err();
    }
}

/// A server of 2025-11-25 may want a stream to be gone on with, and not in a loop.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_ends_is_not_gone_on_with_in_a_loop() {
    let script = Script::new(|asked| {
        match asked.method.as_str() {
        "initialize" => Reply::Http(
            200,
            "application/json",
            vec![("mcp-session-id", "s1")],
            r#"{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}}"#.to_owned(),
        ),
        // The stream of the call, the same one gone on with, and the one of the session.
        "tools/call" | "GET" => Reply::Http(200, "text/event-stream", vec![], "id: 1\nretry: 0\ndata:\n\n".to_owned()),
        _ => Reply::Refused(400, -32601),
    }
    });
    let builder = hasty().lifecycle(rmcp::service::ClientLifecycleMode::Initialize);
    let served = script.over_http(builder).await;
    let error = within("the end", served.client.call("tool", json!({})))
        .await
        .unwrap_err();
    assert!(matches!(error, ClientError::Transport { .. }), "{error:?}");
    // Once a second, for two seconds and two streams, and some for a slow machine.
    assert!(served.asked("GET").len() <= 12, "{}", served.asked("GET").len());
}

/// RFC 9110, section 10.2.3: a server that asks to be left alone is.
#[tokio::test(flavor = "multi_thread")]
async fn retry_after_is_honoured() {
    for status in [429, 503] {
        let script = Script::new(move |asked| match asked.method.as_str() {
            "tools/call" => Reply::Result(created()),
            "tasks/get" if asked.before == 0 => {
                Reply::Http(status, "application/json", vec![("retry-after", "2")], "{}".to_owned())
            }
            "tasks/get" => Reply::Result(done()),
            _ => Reply::Error(-32601, "no"),
        });
        let served = script.over_http(hasty()).await;
        let result = within("the result", served.client.call_and_wait("tool", json!({}))).await;
        assert_eq!(result.unwrap().text(), "done");
        assert!(served.gaps("tasks/get")[0] >= 2000, "{:?}", served.gaps("tasks/get"));
    }
}

/// An answer's form is the server's to choose, each time anew.
#[tokio::test(flavor = "multi_thread")]
async fn event_streams_and_json_are_mixed() {
    let event = |result: Value| {
        let noise = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
        let answer = format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{result}}}"#);
        Reply::Events(vec![noise.to_owned(), answer], false)
    };
    let script = Script::new(move |asked| match (asked.method.as_str(), asked.before) {
        ("tools/call", _) => event(created()),
        ("tasks/get", 0) => Reply::Result(crate::client::harness::working()),
        ("tasks/get", 1) => event(crate::client::harness::working()),
        ("tasks/get", _) => event(done()),
        _ => Reply::Error(-32601, "no"),
    });
    let served = script.over_http(hasty()).await;
    let result = within("the result", served.client.call_and_wait("tool", json!({}))).await;
    assert_eq!(result.unwrap().text(), "done");
}

/// Servers answer an unknown id with HTTP 400 or with 200.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_task_is_unknown_whatever_the_status() {
    for reply in [
        Reply::Refused(400, -32602),
        Reply::Refused(404, -32602),
        Reply::Error(-32602, "unknown"),
    ] {
        let script = Script::new(move |asked| match asked.method.as_str() {
            "tasks/get" | "tasks/cancel" => reply.clone(),
            _ => Reply::Error(-32601, "no"),
        });
        let served = script.over_http(hasty()).await;
        let id = mcp_tasks::TaskId::new("t1");
        let error = served.client.get(&id).await.unwrap_err();
        assert!(matches!(error, ClientError::UnknownTask(_)), "{error:?}");
        let error = served.client.cancel(&id).await.unwrap_err();
        assert!(matches!(error, ClientError::UnknownTask(_)), "{error:?}");
    }
}

/// A server that answers `subscriptions/listen` in any wrong way is asked instead.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_answer_to_a_subscription_does_not_matter() {
    let refused = [Reply::Refused(404, -32601)];
    each(wrong_answers().into_iter().chain(refused), |wrong| async move {
        let answer = wrong.clone();
        let script = Script::new(move |asked| match asked.method.as_str() {
            "tools/call" => Reply::Result(created()),
            "tasks/get" if asked.before < 12 => Reply::Result(crate::client::harness::working()),
            "tasks/get" => Reply::Result(done()),
            "subscriptions/listen" => answer.clone(),
            _ => Reply::Error(-32601, "no"),
        });
        let served = script.over_http(hasty()).await;
        let what = format!("{wrong:.200?}");
        let result = within(&what, served.client.call_and_wait("tool", json!({}))).await;
        assert_eq!(result.unwrap().text(), "done", "{what}");
        assert_eq!(served.asked("subscriptions/listen").len(), 1, "{what}");
    })
    .await;
}

/// What answers a connection that is no MCP server.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_to_something_else_is_an_error() {
    each(wrong_answers(), |wrong| async move {
        let answer = wrong.clone();
        let script = Script::new(move |_| answer.clone());
        let url = script.listen().await;
        let what = format!("{wrong:.200?}");
        let connecting = hasty().connect_timeout(Duration::from_secs(2)).connect_http(&url);
        let error = within(&what, connecting).await.unwrap_err();
        assert!(!error.to_string().is_empty(), "{what}");
    })
    .await;
    let error = TaskClient::connect_http("http://127.0.0.1:1/mcp").await.unwrap_err();
    assert!(matches!(error, ClientError::Transport { .. }), "{error:?}");
    for url in ["", "nowhere", "ftp://example.com", "http://", "https://127.0.0.1:1/mcp"] {
        TaskClient::connect_http(url).await.unwrap_err();
    }
    let error = TaskClient::connect_command(tokio::process::Command::new("/no/such/program"))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("/no/such/program"), "{error}");
}

/// In memory and on standard streams, wrong lines are passed over, and a line without an end is the end.
#[tokio::test(start_paused = true)]
async fn wrong_lines_are_errors_too() {
    for line in [
        "",
        "null",
        "[]",
        "{}",
        "truncat",
        r#"{"jsonrpc":"2.0","id":1}"#,
        "\u{1}",
    ] {
        let text = line.to_owned();
        let script = Script::new(move |asked| match asked.method.as_str() {
            "tools/call" => Reply::Text(text.clone()),
            _ => Reply::Error(-32601, "no"),
        });
        let served = script.in_memory(TaskClient::builder()).await;
        let error = served.client.call("tool", json!({})).await.unwrap_err();
        assert!(matches!(error, ClientError::Transport { .. }), "{line:?}: {error:?}");
    }
    // A line that is no UTF-8, in front of the answer.
    let script = Script::new(|asked| match asked.method.as_str() {
        "tools/call" => Reply::Bytes(b"caf\xe9\n\xff\xfe\n".to_vec(), Box::new(Reply::Result(created()))),
        "tasks/get" => Reply::Result(done()),
        _ => Reply::Error(-32601, "no"),
    });
    let served = script.in_memory(TaskClient::builder()).await;
    assert_eq!(
        served.client.call_and_wait("tool", json!({})).await.unwrap().text(),
        "done"
    );
    let script = Script::new(|asked| match asked.method.as_str() {
        "tools/call" => Reply::Text("x".repeat(20 << 20)),
        _ => Reply::Error(-32601, "no"),
    });
    let served = script.in_memory(TaskClient::builder()).await;
    let error = served.client.call("tool", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("closed"), "{error:?}");
}

/// A list of tools that goes on and on takes no more memory than one message may.
#[tokio::test(start_paused = true)]
async fn a_list_of_tools_has_a_bound() {
    let script = Script::new(|asked| match asked.method.as_str() {
        "tools/list" => Reply::Result(json!({
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "tools": [{"name": "t", "description": "x".repeat(1 << 20), "inputSchema": {"type": "object"}}],
            "nextCursor": asked.before.to_string(),
        })),
        _ => Reply::Error(-32601, "no"),
    });
    let served = script.in_memory(TaskClient::builder()).await;
    let error = served.client.tools().await.unwrap_err();
    assert!(matches!(error, ClientError::Protocol { .. }), "{error:?}");
    assert_eq!(served.asked("tools/list").len(), 16);
}
