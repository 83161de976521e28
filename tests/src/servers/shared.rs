//! A server that all tests of a program share.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::DbServer;

/// Keeps the server for the rest of the process. Statics are not dropped, and a process may be killed: so a shell waits for the
/// end of its input, which is the end of this process, and then ends the server and removes its files.
///
/// # Panics
/// If there is no shell.
#[must_use]
pub fn until_exit(server: DbServer) -> &'static DbServer {
    let script = r#"read -r _; kill -s KILL -- "-$1"; sleep 0.2; rm -rf -- "$2""#;
    let mut watcher = Command::new("sh");
    watcher
        .args(["-c", script, "sh", &server.pid().to_string()])
        .arg(server.directory())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // So that what ends this process from a terminal does not end the shell before its work.
        .process_group(0);
    let watcher = watcher.spawn().expect("a shell runs");
    // Neither is dropped: the pipe closes with the process.
    &Box::leak(Box::new((server, watcher))).0
}
