//! The program in a terminal and out of one, and servers for it.

mod pty;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use mcp_tasks::client::{TaskClient, ToolCall};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

pub(crate) use mcp_tasks_tests::patience::{until, within};

pub(crate) use self::pty::Terminal;
pub(crate) use crate::harness::{Asked, Fixture, Reply, Script, created, done, task, working};

/// A user of the program: a home of their own, and variables.
#[derive(Debug)]
pub(crate) struct User {
    home: tempfile::TempDir,
    env: Vec<(String, String)>,
}

/// What a run of the program left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// The document that it printed.
    pub(crate) fn document(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl User {
    pub(crate) fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
            env: Vec::new(),
        }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Where tasks are kept for this user.
    pub(crate) fn state(&self) -> PathBuf {
        self.home.path().join("state/mcp-tasks/tasks.json")
    }

    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.home.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// The tasks that are kept, as `list` shows them.
    pub(crate) async fn saved_tasks(&self) -> Vec<Value> {
        let listed = self.run(&["list", "-o", "json"]).await;
        listed.document()["tasks"].as_array().unwrap().clone()
    }

    fn environment(&self) -> Vec<(String, String)> {
        let home = self.home.path();
        let path = |path: &Path| path.to_str().unwrap().to_owned();
        let mut all = vec![
            ("HOME".to_owned(), path(home)),
            ("XDG_STATE_HOME".to_owned(), path(&home.join("state"))),
            ("PATH".to_owned(), std::env::var("PATH").unwrap_or_default()),
            ("TERM".to_owned(), "xterm-256color".to_owned()),
        ];
        all.extend(std::env::vars().filter(|(name, _)| name.starts_with("LLVM_")));
        all.extend(self.env.iter().cloned());
        all
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-tasks-cli"));
        command
            .args(arguments)
            .env_clear()
            .envs(self.environment())
            .current_dir(self.home.path())
            .kill_on_drop(true)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs it without a terminal.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with_input(arguments, "").await
    }

    pub(crate) async fn run_with_input(&self, arguments: &[&str], input: &str) -> Ran {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A program that does not read may be gone.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        let output = within("the program ends", child.wait_with_output()).await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let ran = Ran {
            code: output.status.code().unwrap_or(-1),
            out: text(output.stdout),
            err: text(output.stderr),
        };
        eprintln!("{arguments:?}: {ran:?}");
        ran
    }

    /// Runs it in a terminal.
    pub(crate) fn open(&self, arguments: &[&str]) -> Terminal {
        Terminal::open(
            env!("CARGO_BIN_EXE_mcp-tasks-cli"),
            arguments,
            &self.environment(),
            self.home.path(),
        )
    }
}

/// Another client of a server, to open gates and to look inside.
pub(crate) async fn beside(server: &Fixture) -> TaskClient {
    TaskClient::connect_http(server.url()).await.unwrap()
}

/// Lets those pass who wait at a gate.
pub(crate) async fn open_gate(client: &TaskClient, gate: &str) {
    let opened = client.call("open", json!({"gate": gate})).await.unwrap();
    assert!(matches!(opened, ToolCall::Immediate(_)));
}

/// A command that starts the fixture server on standard streams, as `SERVER` of the command line.
pub(crate) fn stdio_server() -> String {
    format!("stdio:{}", env!("CARGO_BIN_EXE_fixture-server"))
}
