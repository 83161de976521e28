//! Redis, and Valkey, which speaks the same.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::{DbServer, directory, free_port, program, say};

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
        is_ready: has_loaded,
        url: format!("redis://127.0.0.1:{port}"),
        port,
        child: None,
        directory,
    };
    server.start();
    server
}

/// A server takes connections before it has read what it stored.
fn has_loaded(server: &DbServer) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port));
    let limit = Duration::from_secs(1);
    let asked = TcpStream::connect_timeout(&address, limit).and_then(|mut connection| {
        connection.set_read_timeout(Some(limit))?;
        connection.write_all(b"PING\r\n")?;
        // `+PONG`, or an error: `-LOADING`, or one of a server that wants a password first.
        let mut answer = [0; 5];
        connection.read_exact(&mut answer)?;
        Ok(answer)
    });
    asked.is_ok_and(|answer| !answer.starts_with(b"-LOAD"))
}
