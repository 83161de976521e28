//! PostgreSQL.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{DbServer, directory, free_port, program};

/// Where Debian puts the programs of each version.
const DEBIAN: &str = "/usr/lib/postgresql";

/// A PostgreSQL server whose superuser is `postgres` without a password, or `None` if PostgreSQL is not installed.
/// `options` go to its command line, such as `-c` and `max_connections=10`.
///
/// # Panics
/// If the cluster cannot be created.
#[must_use]
pub fn postgres(options: &[&str]) -> Option<DbServer> {
    let bin = bin()?;
    let (directory, port) = (directory().expect("a directory"), free_port());
    let data = directory.path().join("data");
    std::fs::create_dir(&data).expect("a directory can be made");
    if is_root() {
        // PostgreSQL refuses to run as root; the package brings a user of its own.
        let given = Command::new("chown")
            .arg("-R")
            .arg("postgres")
            .arg(directory.path())
            .status();
        assert!(given.expect("chown runs").success(), "the user postgres exists");
    }
    let mut initdb = unprivileged(&bin.join("initdb"));
    let made = initdb
        .args([
            "--auth=trust",
            "--username=postgres",
            "--no-sync",
            "--encoding=UTF8",
            "--locale=C",
            "-D",
        ])
        .arg(&data)
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .status();
    assert!(made.expect("initdb runs").success(), "initdb makes a cluster");

    let mut command = unprivileged(&bin.join("postgres"));
    command
        .arg("-D")
        .arg(&data)
        .args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1", "-k"])
        .arg(directory.path())
        .args(options);
    let mut server = DbServer {
        name: "PostgreSQL",
        command,
        is_ready,
        url: format!("postgres://postgres@127.0.0.1:{port}/postgres"),
        port,
        child: None,
        directory,
    };
    server.start();
    Some(server)
}

fn is_ready(server: &DbServer) -> bool {
    let Some(bin) = bin() else { return false };
    Command::new(bin.join("pg_isready"))
        .args(["-q", "-h", "127.0.0.1", "-p", &server.port.to_string()])
        .status()
        .is_ok_and(|status| status.success())
}

fn bin() -> Option<PathBuf> {
    let mut versions: Vec<_> = std::fs::read_dir(DEBIAN)
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin/initdb"))
        .collect();
    versions.sort();
    let newest_first = versions.into_iter().rev();
    Some(program("initdb", newest_first, "postgresql")?.parent()?.to_owned())
}

fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

/// Replaces itself with the program, so that the process which is started is the server.
fn unprivileged(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=postgres", "--regid=postgres", "--clear-groups"])
        .arg(program);
    command
}
