//! A client that is killed (`kill -9`), and another process that goes on.

use std::process::Stdio;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::client::harness::{Fixture, within};

struct Client {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    stdin: ChildStdin,
    seen: Vec<String>,
}

impl Client {
    fn start(server: &Fixture, directory: &TempDir, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fixture-client"))
            .arg(server.url())
            .arg(directory.path().join("task.json"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let stdin = child.stdin.take().unwrap();
        Self {
            child,
            lines,
            stdin,
            seen: Vec::new(),
        }
    }

    /// The next line that starts like this.
    async fn line(&mut self, start: &str) -> String {
        loop {
            let line = within(start, self.lines.next_line()).await.unwrap();
            let line = line.unwrap_or_else(|| panic!("the client has ended without {start:?}: {:?}", self.seen));
            self.seen.push(line.clone());
            if let Some(rest) = line.strip_prefix(start) {
                return rest.to_owned();
            }
        }
    }

    async fn say(&mut self, line: &str) {
        self.stdin.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// `kill -9`.
    async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

#[tokio::test]
async fn a_task_that_works_is_resumed() {
    let server = Fixture::http(&[]).await;
    let directory = tempfile::tempdir().unwrap();
    let gate = directory.path().join("gate");
    let arguments = serde_json::json!({"path": gate}).to_string();
    let mut client = Client::start(&server, &directory, &["call", "wait_for_file", &arguments]);
    client.line("saved: ").await;
    client.line("status: working").await;
    client.kill().await;
    std::fs::write(gate, "").unwrap();
    let mut client = Client::start(&server, &directory, &["resume"]);
    assert_eq!(client.line("result: ").await, "it is there");
}

/// Who was asked and had not answered is asked by the next process; who had answered is not.
#[tokio::test]
async fn a_task_that_asks_is_resumed_and_asks_once() {
    let server = Fixture::http(&[]).await;
    let directory = tempfile::tempdir().unwrap();
    let mut client = Client::start(&server, &directory, &["call", "ask_twice", "{}"]);
    assert_eq!(client.line("asked: ").await, "First?");
    client.kill().await;

    let mut client = Client::start(&server, &directory, &["resume"]);
    assert_eq!(client.line("asked: ").await, "First?");
    client.say("yes").await;
    assert_eq!(client.line("asked: ").await, "Second?");
    client.kill().await;

    let mut client = Client::start(&server, &directory, &["resume"]);
    assert_eq!(client.line("asked: ").await, "Second?");
    client.say("no").await;
    assert_eq!(client.line("result: ").await, "yes no");
    assert!(
        !client.seen.iter().any(|line| line.contains("First?")),
        "{:?}",
        client.seen
    );
}

/// Killed after the answer was given and before the server has it: the answer is sent by the next process.
#[tokio::test]
async fn an_answer_is_not_lost_with_the_process() {
    let server = Fixture::http(&[]).await;
    let directory = tempfile::tempdir().unwrap();
    let mut client = Client::start(&server, &directory, &["call", "ask", "{}"]);
    client.line("saved: ").await;
    client.line("asked: ").await;
    // The server hears nothing from here on, so the client dies with the answer in its file alone.
    server.signal("STOP").await;
    client.say("yes").await;
    client.line("saved: ").await;
    client.kill().await;
    server.signal("CONT").await;
    let mut client = Client::start(&server, &directory, &["resume"]);
    assert_eq!(client.line("result: ").await, "yes");
    assert!(
        !client.seen.iter().any(|line| line.starts_with("asked: ")),
        "{:?}",
        client.seen
    );
}
