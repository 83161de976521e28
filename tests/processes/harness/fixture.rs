//! The server's process.

use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use mcp_tasks_tests::patience::{until, within};

/// A variable of the tests' own: what `mcp.tasks.http.front` is for their servers. Without it, `true`.
pub(crate) const FRONT: &str = "MCP_TASKS_TESTS_FRONT";

fn front() -> String {
    std::env::var(FRONT).unwrap_or_else(|_| "true".to_owned())
}

/// A running fixture server; it is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Fixture {
    child: Child,
    log: Arc<Mutex<String>>,
    url: String,
}

/// How a server ended.
#[derive(Debug)]
pub(crate) struct Exit {
    pub(crate) code: Option<i32>,
    pub(crate) took: Duration,
    pub(crate) log: String,
}

/// The fixture's command with nothing of this process's settings in its environment.
pub(crate) fn command(env: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fixture-server"));
    command
        .env_clear()
        // Coverage tools say through it where a process leaves its counts.
        .envs(std::env::vars().filter(|(name, _)| name.starts_with("LLVM_")))
        .env("MCP_TASKS_HTTP_FRONT", front())
        .envs(env.iter().copied())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .kill_on_drop(true)
        .stderr(Stdio::piped());
    command
}

/// Collects what is written, and shows it with the test's output.
fn collect(from: impl AsyncRead + Unpin + Send + 'static) -> Arc<Mutex<String>> {
    let log = Arc::new(Mutex::new(String::new()));
    let into = log.clone();
    tokio::spawn(async move {
        let mut lines = BufReader::new(from).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            eprintln!("server: {line}");
            let mut log = into.lock().unwrap();
            log.push_str(&line);
            log.push('\n');
        }
    });
    log
}

impl Fixture {
    /// A server on a free port.
    pub(crate) async fn http(env: &[(&str, &str)]) -> Self {
        let mut child = command(&[&[("MCP_TASKS_HTTP_ADDR", "127.0.0.1:0")], env].concat())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let log = collect(child.stderr.take().unwrap());
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = within("the server says where it listens", lines.next_line()).await;
        let url = url
            .unwrap()
            .unwrap_or_else(|| panic!("no URL: {}", log.lock().unwrap()));
        Self { child, log, url }
    }

    /// A server at the ends of two pipes.
    pub(crate) fn stdio(env: &[(&str, &str)]) -> (Self, ChildStdin, ChildStdout) {
        let mut child = command(&[&[("MCP_TASKS_TRANSPORT", "stdio")], env].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let log = collect(child.stderr.take().unwrap());
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let url = String::new();
        (Self { child, log, url }, stdin, stdout)
    }

    /// A server that is not expected to come up.
    pub(crate) async fn refused(env: &[(&str, &str)]) -> Exit {
        let mut child = command(env).stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let log = collect(child.stderr.take().unwrap());
        let url = String::new();
        Self { child, log, url }.exit().await
    }

    /// Where MCP is served.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The host and port of [`url`](Self::url).
    pub(crate) fn authority(&self) -> &str {
        let rest = self.url.strip_prefix("http://").unwrap();
        rest.split('/').next().unwrap()
    }

    /// What the server has logged so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Sends a signal by its name.
    pub(crate) async fn signal(&self, name: &str) {
        let pid = self.child.id().unwrap().to_string();
        let status = Command::new("kill").args(["-s", name, &pid]).status().await.unwrap();
        assert!(status.success());
    }

    /// The most memory that was resident at a time, in bytes.
    #[cfg(target_os = "linux")]
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id().unwrap())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let kibibytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        kibibytes * 1024
    }

    /// Waits until the log has these words.
    pub(crate) async fn logged(&self, words: &str) {
        until(words, async || self.log().contains(words).then_some(())).await;
    }

    /// Waits for the server to end by itself.
    pub(crate) async fn exit(mut self) -> Exit {
        let start = Instant::now();
        let status = within("the server ends", self.child.wait()).await.unwrap();
        let took = start.elapsed();
        // The pipe's last lines may still be on their way.
        let log = self.log.clone();
        until("the log is complete", async || {
            (Arc::strong_count(&log) == 2).then_some(())
        })
        .await;
        Exit {
            code: status.code(),
            took,
            log: log.lock().unwrap().clone(),
        }
    }
}
