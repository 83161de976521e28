//! Exit codes, and the documents that scripts read: one of every kind.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::cli::harness::{Asked, Fixture, Ran, Reply, Script, User, created, task, until, within, working};

/// A server with a tool `t` that takes nothing, and does the rest like this.
pub(crate) fn scripted(act: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Script {
    Script::new(move |asked| match asked.method.as_str() {
        "tools/list" => Reply::Result(json!({
            "resultType": "complete",
            "tools": [{"name": "t", "inputSchema": {"type": "object"}}],
            "ttlMs": 0,
            "cacheScope": "private",
        })),
        _ => act(asked),
    })
}

fn is(ran: &Ran, code: i32, outcome: &str) -> Value {
    let document = ran.document();
    assert_eq!(
        (ran.code, document["outcome"].as_str()),
        (code, Some(outcome)),
        "{ran:?}"
    );
    assert_eq!(document["exitCode"], code);
    document
}

#[tokio::test(flavor = "multi_thread")]
async fn results_and_errors_of_a_real_server() {
    let server = Fixture::http(&[]).await;
    let url = server.url();
    let user = User::new();
    let call = async |tool: &str, more: &[&str]| user.run(&[&["call", url, tool, "-o", "json"], more].concat()).await;

    let plain = is(&call("plain", &["-a", "text=ab", "-a", "times=2"]).await, 0, "success");
    assert_eq!(plain["result"]["content"][0]["text"], "abab");
    assert!(plain.get("taskId").is_none());
    let task = is(
        &call("required", &["-a", "text=ab", "-a", "times=2"]).await,
        0,
        "success",
    );
    assert_eq!(task["result"]["content"][0]["text"], "abab");
    assert_eq!(task["handle"]["taskId"], task["taskId"]);
    assert_eq!(task["tool"], "required");

    let failed = is(&call("fail", &[]).await, 1, "tool_error");
    assert_eq!(failed["result"]["isError"], true);
    let failed = is(&call("fail_protocol", &[]).await, 3, "failed");
    assert_eq!(failed["error"]["message"], "the printer is on fire");
    assert_eq!(failed["error"]["data"]["floor"], 3);
    // The server asks for no roots where none are declared.
    let roots = is(&call("roots", &[]).await, 3, "failed");
    assert_eq!(roots["error"]["code"], -32021);

    let asks = is(&call("ask", &[]).await, 5, "input_needed");
    assert_eq!(asks["requests"][0]["key"], "go");
    assert!(asks["message"].as_str().unwrap().contains("there is no terminal"));
    let id = asks["taskId"].as_str().unwrap();
    assert_eq!(asks["resume"], format!("mcp-tasks resume {id}"));
    let looked = is(&user.run(&["get", id, "-o", "json"]).await, 0, "success");
    assert_eq!(looked["status"], "input_required");
    assert_eq!(looked["requests"][0]["request"]["params"]["message"], "Go on?");

    let unknown = user.run(&["get", "nobody-knows", "--server", url, "-o", "json"]).await;
    is(&unknown, 6, "unknown");
    assert!(user.run(&["get", "nobody-knows"]).await.err.contains("--server"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_command_line_is_told_before_anything_is_sent() {
    let server = Fixture::http(&[]).await;
    let user = User::new();
    let call = async |more: &[&str]| user.run(&[&["call", server.url()], more].concat()).await;
    for (arguments, words) in [
        (
            &["plain", "-a", "text=ab", "-a", "times=many"][..],
            "times: a whole number is expected",
        ),
        (
            &["plain", "-a", "text=ab", "-a", "times=300"],
            "300 is greater than the maximum of 255",
        ),
        (
            &["plain", "-a", "text=ab"],
            "times: it is missing; a whole number is expected",
        ),
        (
            &["plain", "-a", "txt=ab", "-a", "times=1"],
            "txt: there is no such argument",
        ),
        (&["plain", "--json", "[1]"], "no object"),
        (&["plain", "--json", "{"], "no JSON object"),
        (
            &["plain", "--json", r#"{"text": 7, "times": 1}"#],
            "text: 7 is not of type \"string\"",
        ),
        (&["plane"], "no tool \"plane\"; it has "),
        (&["plain", "-a", "text"], "NAME=VALUE"),
    ] {
        let ran = call(arguments).await;
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.err.contains(words), "{words}: {ran:?}");
        assert_eq!(ran.out, "");
    }
    is(&call(&["plain", "-o", "json"]).await, 2, "usage");
    assert_eq!(user.run(&["call", "localhost:8080", "t"]).await.code, 2);
    assert_eq!(user.run(&[]).await.code, 2);
    assert_eq!(user.run(&["--help"]).await.code, 0);
    let seen = user.run(&["call", server.url(), "observe"]).await;
    let seen: Value = serde_json::from_str(&seen.out).unwrap();
    assert_eq!(seen["journal"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_another_client_cancels_is_cancelled() {
    let server = Fixture::http(&[]).await;
    let user = User::new();
    let waiting = user
        .command(&["call", server.url(), "sleep", "-o", "json"])
        .spawn()
        .unwrap();
    let id = until("the task is kept", async || {
        Some(user.saved_tasks().await.first()?["taskId"].as_str()?.to_owned())
    })
    .await;
    let cancelled = is(&user.run(&["cancel", &id, "-o", "json"]).await, 0, "success");
    assert_eq!(cancelled["status"], "cancelled");
    let output = within("the call ends", waiting.wait_with_output()).await.unwrap();
    assert_eq!(output.status.code(), Some(4));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["outcome"], "cancelled");
    assert!(user.saved_tasks().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_past_its_time_has_expired() {
    let script = scripted(|asked| match asked.method.as_str() {
        "tools/call" => Reply::Result(task("working", json!({"resultType": "task", "ttlMs": 0}))),
        "tasks/get" => Reply::Error(-32602, "unknown task"),
        _ => Reply::Error(-32601, "unknown method"),
    });
    let user = User::new();
    let ran = user.run(&["call", &script.listen().await, "t", "-o", "json"]).await;
    is(&ran, 6, "expired");
    assert!(user.saved_tasks().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_is_no_server_that_is_gone() {
    let user = User::new();
    let refuses = scripted(|_| Reply::Error(-32000, "not today")).listen().await;
    let document = is(&user.run(&["call", &refuses, "t", "-o", "json"]).await, 3, "refused");
    assert_eq!(document["error"]["message"], "not today");
    let senseless = scripted(|_| Reply::Result(json!({"resultType": "complete"})))
        .listen()
        .await;
    is(&user.run(&["call", &senseless, "t", "-o", "json"]).await, 7, "protocol");

    // A port without a listener.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    is(&user.run(&["tools", &gone, "-o", "json"]).await, 7, "transport");
    is(
        &user.run(&["tools", "stdio:/nowhere/at/all", "-o", "json"]).await,
        7,
        "transport",
    );
    is(
        &user
            .run(&["call", &gone, "t", "--answers", "/nowhere/at/all", "-o", "json"])
            .await,
        8,
        "local",
    );
}

/// Where nothing is at the URL, the words end well, and say where servers are.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_path_is_told_and_the_right_one_is_suggested() {
    let user = User::new();
    let server = Fixture::http(&[]).await;
    let root = server.url().strip_suffix("/mcp").unwrap();
    let message = async |url: &str| {
        let ran = user.run(&["tools", url, "-o", "json"]).await;
        let document = ran.document();
        assert_eq!(ran.code, 7, "{ran:?}");
        document["message"].as_str().unwrap().to_owned()
    };
    let wrong = message(&format!("{root}/elsewhere")).await;
    assert!(wrong.ends_with("HTTP 404 Not Found"), "{wrong}");
    for none in [root.to_owned(), format!("{root}/?key=tell-nobody")] {
        let wrong = message(&none).await;
        let place = format!("HTTP 404 Not Found; the URL has no path, and most servers are at {root}/mcp");
        assert!(wrong.ends_with(&place), "{wrong}");
    }
}

/// A server that ends without a word is most often one that was not told to speak on its standard streams.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_before_it_answers_is_told_how_to_speak() {
    let user = User::new();
    let hint = "-e MCP_TASKS_TRANSPORT=stdio";
    let ran = user.run(&["tools", "stdio:true"]).await;
    assert_eq!(ran.code, 7);
    assert!(
        ran.err.contains("no MCP message came from the standard output of true"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains(hint), "{}", ran.err);
    // Not where that is done, nor where there is no such program.
    for arguments in [
        &["tools", "stdio:true", "-e", "MCP_TASKS_TRANSPORT=stdio"][..],
        &["tools", "stdio:/nowhere/at/all"],
    ] {
        let ran = user.run(arguments).await;
        assert_eq!(ran.code, 7);
        assert!(!ran.err.contains(hint), "{}", ran.err);
    }
}

/// The readable words are in `statusMessage` where a server's error says no more than its code.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_failed_is_told_in_the_words_that_say_more() {
    let script = scripted(|asked| match asked.method.as_str() {
        "tools/call" => Reply::Result(created()),
        "tasks/get" => Reply::Result(task(
            "failed",
            json!({"error": {"code": -32603, "message": "Internal error"}, "statusMessage": "the printer is gone"}),
        )),
        _ => Reply::Error(-32601, "unknown method"),
    });
    let user = User::new();
    let url = script.listen().await;
    let words = "the task t1 has failed: the printer is gone (-32603)";
    for command in [
        &["call", &url, "t", "-o", "json"][..],
        &["resume", "t1", "--server", &url, "-o", "json"],
        &["watch", "t1", "--server", &url],
    ] {
        let ran = user.run(command).await;
        assert_eq!(ran.code, 3, "{ran:?}");
        assert!(ran.out.contains(words) || ran.err.contains(words), "{ran:?}");
    }
}

/// SIGTERM leaves no time for a second thought.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_asked_to_end_detaches() {
    let script = scripted(|asked| match asked.method.as_str() {
        "tools/call" => Reply::Result(created()),
        "tasks/get" => Reply::Result(working()),
        _ => Reply::Error(-32601, "unknown method"),
    });
    let url = script.listen().await;
    let user = User::new();
    let mut child = user.command(&["call", &url, "t", "-o", "json"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    while within("it works", lines.next_line()).await.unwrap().as_deref() != Some("working") {}
    let pid = child.id().unwrap().to_string();
    assert!(
        Command::new("kill")
            .args(["-s", "TERM", &pid])
            .status()
            .await
            .unwrap()
            .success()
    );
    let output = within("it ends", child.wait_with_output()).await.unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (output.status.code(), &document["outcome"]),
        (Some(130), &json!("detached"))
    );
    assert_eq!(document["resume"], "mcp-tasks resume t1");
    assert_eq!(user.saved_tasks().await.len(), 1);
}

/// A server that was started for a command hears that nothing more comes, however the command ends.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_server_on_standard_streams_ends_in_peace_after_a_mistake() {
    let user = User::new().with("MCP_TASKS_TRANSPORT", "stdio");
    for (number, mistake) in [&["no_such_tool"][..], &["plain", "-a", "times=many"]]
        .iter()
        .enumerate()
    {
        let farewell = user.file("farewell", "");
        let script = r#""$0"; echo "$1" > "$2""#;
        let fixture = env!("CARGO_BIN_EXE_fixture-server");
        let server = format!("stdio:sh -c '{script}' {fixture} {number} {}", farewell.display());
        let ran = user.run(&[&["call", &server], *mistake].concat()).await;
        assert_eq!(ran.code, 2, "{ran:?}");
        assert_eq!(std::fs::read_to_string(&farewell).unwrap().trim(), number.to_string());
    }
}
