//! Redis, and Valkey, which speaks the same.

use std::path::PathBuf;
use std::process::Command;

use super::{DbServer, directory, free_port, program, say, takes_connections};

/// A Redis server that flushes each write to its append-only file, or `None` if Redis is not installed. `options` go to its
/// command line.
#[must_use]
pub fn redis(options: &[&str]) -> Option<DbServer> {
    let program = program("redis-server", [], "redis-server")?;
    Some(start("Redis", program, options))
}

/// The same with Valkey, which not every distribution has: its absence is no failure anywhere.
#[must_use]
pub fn valkey(options: &[&str]) -> Option<DbServer> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|directory| directory.join("valkey-server"))
        .find(|candidate| candidate.is_file());
    if found.is_none() {
        say("SKIPPED: `valkey-server` is not installed");
    }
    found.map(|program| start("Valkey", program, options))
}

fn start(name: &'static str, program: PathBuf, options: &[&str]) -> DbServer {
    let (directory, port) = (directory().expect("a directory"), free_port());
    let mut command = Command::new(program);
    command
        .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--dir"])
        .arg(directory.path())
        .args(["--appendonly", "yes", "--appendfsync", "always", "--save", ""])
        .args(options);
    let mut server = DbServer {
        name,
        command,
        is_ready: takes_connections,
        url: format!("redis://127.0.0.1:{port}"),
        port,
        child: None,
        directory,
    };
    server.start();
    server
}
