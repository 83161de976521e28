//! FastMCP's client and our server.
//!
//! It never sends `Mcp-Name` on `tasks/*`, so it needs `mcp.tasks.http.require-name=false`.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::python::{python, script};
use crate::client::harness::{Fixture, within};

/// Takes requests of clients that do not name their task.
const LENIENT: (&str, &str) = ("MCP_TASKS_HTTP_REQUIRE_NAME", "false");

/// FastMCP's client in a process of its own.
struct Client {
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

impl Client {
    fn start(python: PathBuf, server: &Fixture, answer: &Value) -> Self {
        let mut child = Command::new(python)
            .arg(script("client.py"))
            .arg(server.url())
            .args(["--answer", &answer.to_string()])
            .current_dir(env!("CARGO_TARGET_TMPDIR"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("Python can be started");
        Self {
            stdin: child.stdin.take().unwrap(),
            lines: BufReader::new(child.stdout.take().unwrap()).lines(),
            _child: child,
        }
    }

    /// What comes of a command; see the script.
    async fn act(&mut self, command: Value) -> Value {
        self.stdin.write_all(format!("{command}\n").as_bytes()).await.unwrap();
        let line = within("FastMCP's answer", self.lines.next_line()).await.unwrap();
        serde_json::from_str(&line.expect("the client goes on")).unwrap()
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.act(json!({"do": "call", "tool": tool, "arguments": arguments}))
            .await
    }

    /// Starts a task: its id.
    async fn start_task(&mut self, tool: &str, arguments: Value) -> Value {
        let mut started = self
            .act(json!({"do": "start", "tool": tool, "arguments": arguments}))
            .await;
        assert!(started["task"].is_string(), "{started}");
        started["task"].take()
    }
}

#[tokio::test]
async fn its_tasks_end_with_a_result_or_an_error() {
    let Some(python) = python() else { return };
    let server = Fixture::http(&[LENIENT]).await;
    let mut client = Client::start(python, &server, &json!("decline"));
    let plain = client.call("plain", json!({"text": "ab", "times": 2})).await;
    assert_eq!((&plain["text"], &plain["isError"]), (&json!("abab"), &json!(false)));
    let required = client.call("required", json!({"text": "ab", "times": 2})).await;
    assert_eq!(
        (&required["text"], &required["isError"]),
        (&json!("abab"), &json!(false))
    );
    let failed = client.call("fail", json!({})).await;
    assert_eq!(
        (&failed["text"], &failed["isError"]),
        (&json!("out of paper"), &json!(true))
    );
    let task = client.start_task("fail_protocol", json!({})).await;
    let failed = client.act(json!({"do": "wait", "task": task, "state": "failed"})).await;
    assert_eq!(failed["error"]["code"], -32100, "{failed}");
    assert_eq!(failed["error"]["message"], "the printer is on fire");
    let failed = client.act(json!({"do": "result", "task": task})).await;
    assert_eq!(failed["toolError"], "the printer is on fire");
}

#[tokio::test]
async fn it_sees_progress_and_cancels() {
    let Some(python) = python() else { return };
    let server = Fixture::http(&[LENIENT]).await;
    let mut client = Client::start(python, &server, &json!("decline"));
    let gate = json!({"gate": "g"});
    let task = client.start_task("report_and_end", gate.clone()).await;
    let working = loop {
        let shown = client.act(json!({"do": "status", "task": task})).await;
        if !shown["statusMessage"].is_null() {
            break shown;
        }
    };
    assert_eq!(
        (&working["status"], &working["statusMessage"]),
        (&json!("working"), &json!("1/2: at work"))
    );
    client.call("open", gate).await;
    let done = client.act(json!({"do": "result", "task": task})).await;
    assert_eq!(done["text"], "the end", "{done}");

    let task = client.start_task("sleep", json!({})).await;
    let cancelled = client.act(json!({"do": "cancel", "task": task})).await;
    assert_eq!(cancelled, json!({"asked": []}));
    let shown = client
        .act(json!({"do": "wait", "task": task, "state": "cancelled"}))
        .await;
    assert_eq!(shown["status"], "cancelled", "{shown}");
    let ended = client.act(json!({"do": "result", "task": task})).await;
    assert!(ended["toolError"].as_str().unwrap().contains("cancelled"), "{ended}");
}

/// It answers whatever a poll shows and asks its user each time, so what was answered must not be shown any more.
#[tokio::test]
async fn its_user_is_asked_each_question_once() {
    let Some(python) = python() else { return };
    let server = Fixture::http(&[LENIENT]).await;
    let mut client = Client::start(python.clone(), &server, &json!({"confirm": true}));
    for _ in 0..10 {
        let both = client.call("ask_two", json!({})).await;
        assert_eq!(both["text"], "yes yes", "{both}");
        let mut asked: Vec<_> = both["asked"].as_array().unwrap().iter().map(Value::as_str).collect();
        asked.sort();
        assert_eq!(asked, [Some("A?"), Some("B?")]);
        let each = client.call("ask_twice", json!({})).await;
        assert_eq!(
            (&each["text"], &each["asked"]),
            (&json!("yes yes"), &json!(["First?", "Second?"]))
        );
    }
    // Not a task: a round of the call.
    let plain = client.call("plain_ask", json!({})).await;
    assert_eq!(
        (&plain["text"], &plain["asked"]),
        (&json!("yes"), &json!(["Go on?"])),
        "{plain}"
    );
    let mut client = Client::start(python, &server, &json!("decline"));
    let declined = client.call("ask", json!({})).await;
    assert_eq!(
        (&declined["text"], &declined["asked"]),
        (&json!("declined"), &json!(["Go on?"]))
    );
}

/// Tasks, "Streamable HTTP: Routing Headers": what has no `Mcp-Name` is refused unless the server is told otherwise.
#[tokio::test]
async fn without_a_name_its_task_is_refused_in_words_that_say_why() {
    let Some(python) = python() else { return };
    let server = Fixture::http(&[]).await;
    let mut client = Client::start(python, &server, &json!("decline"));
    let task = client.start_task("optional", json!({"text": "a", "times": 1})).await;
    for command in ["status", "cancel"] {
        let refused = client.act(json!({"do": command, "task": task})).await;
        assert_eq!(refused["error"]["code"], -32020, "{refused}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.to_lowercase().contains("mcp-name"), "{message}");
    }
}
