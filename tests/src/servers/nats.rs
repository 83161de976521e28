//! NATS with JetStream.

use std::process::Command;

use super::{DbServer, directory, free_port, program, takes_connections};

/// A NATS server with JetStream, or `None` if it is not installed. `options` go to its command line.
#[must_use]
pub fn nats(options: &[&str]) -> Option<DbServer> {
    start(true, options)
}

/// A NATS server that only passes messages on, or `None` if it is not installed.
#[must_use]
pub fn nats_without_jetstream(options: &[&str]) -> Option<DbServer> {
    start(false, options)
}

fn start(jetstream: bool, options: &[&str]) -> Option<DbServer> {
    let program = program("nats-server", [], "nats-server")?;
    let (directory, port) = (directory().expect("a directory"), free_port());
    let mut command = Command::new(program);
    command.args(["--addr", "127.0.0.1", "--port", &port.to_string()]);
    if jetstream {
        command.args(["--jetstream", "--store_dir"]).arg(directory.path());
    }
    command.args(options);
    let mut server = DbServer {
        name: "NATS",
        command,
        is_ready: takes_connections,
        url: format!("nats://127.0.0.1:{port}"),
        port,
        child: None,
        directory,
    };
    server.start();
    Some(server)
}
