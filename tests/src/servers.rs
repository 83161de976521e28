//! Private database servers for tests: started on a free port, in a directory that goes with them.
//!
//! A server whose program is not installed is skipped, loudly; in CI (`CI` is set) that is a failure.

use std::fs::File;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

mod nats;
mod postgres;
mod redis;
#[cfg(unix)]
mod shared;

#[cfg(unix)]
pub use self::shared::until_exit;
pub use self::{
    nats::{nats, nats_without_jetstream},
    postgres::postgres,
    redis::{redis, valkey},
};

/// How long a server may take to take connections: far more than a loaded machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a server that starts is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// How often one that ends at once is started again: what a killed PostgreSQL leaves behind takes moments to go.
const RESTARTS: u32 = 250;

/// A running server, killed when dropped.
#[derive(Debug)]
pub struct DbServer {
    name: &'static str,
    command: Command,
    is_ready: fn(&DbServer) -> bool,
    url: String,
    port: u16,
    child: Option<Child>,
    directory: TempDir,
}

impl DbServer {
    /// Where it is reached, as `mcp.tasks.store.url` takes it.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Where its files are.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Its process.
    ///
    /// # Panics
    /// If it does not run.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("the server runs").id()
    }

    /// Ends it at once, as `kill -9` does. What it started ends too.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // The parent is stopped first, so that it starts no others and restarts none.
            let _ = send("STOP", &[format!("-{}", child.id())]);
            let _ = send("KILL", &everyone(child.id()));
            let _ = child.wait();
        }
    }

    /// Sends a signal, such as `STOP` and `CONT`, to the server and what it started.
    ///
    /// # Panics
    /// If there is no program `kill`.
    pub fn signal(&self, signal: &str) {
        let sent = send(signal, &everyone(self.pid()));
        assert!(sent.expect("kill runs").success(), "{} takes {signal}", self.name);
    }

    /// Starts it again, on the same port and the same files, and waits until it takes connections.
    ///
    /// # Panics
    /// If it does not come up.
    pub fn start(&mut self) {
        self.kill();
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log())
            .expect("the log can be written");
        self.command
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file can be shared"))
            .stderr(log);
        in_a_group_of_its_own(&mut self.command);
        self.child = Some(self.command.spawn().expect("the server's program runs"));
        let (end, mut again) = (Instant::now() + PATIENCE, RESTARTS);
        while !(self.is_ready)(self) {
            let child = self.child.as_mut().expect("it was started");
            let mut ended = child.try_wait().expect("a child can be asked").is_some();
            if ended && again > 0 {
                (ended, again) = (false, again - 1);
                *child = self.command.spawn().expect("the server's program runs");
            }
            assert!(
                !ended && Instant::now() < end,
                "{} does not come up:\n{}",
                self.name,
                std::fs::read_to_string(self.log()).unwrap_or_default()
            );
            std::thread::sleep(LOOK);
        }
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("server.log")
    }
}

impl Drop for DbServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The process group, and the children, which PostgreSQL puts in groups of their own.
fn everyone(parent: u32) -> Vec<String> {
    let children = Command::new("pgrep").args(["-P", &parent.to_string()]).output();
    let children = children.map(|found| String::from_utf8_lossy(&found.stdout).into_owned());
    let mut everyone = vec![format!("-{parent}")];
    everyone.extend(children.unwrap_or_default().split_whitespace().map(str::to_owned));
    everyone
}

fn send(signal: &str, to: &[String]) -> io::Result<ExitStatus> {
    Command::new("kill")
        .arg(format!("-{signal}"))
        .arg("--")
        .args(to)
        .status()
}

#[cfg(unix)]
fn in_a_group_of_its_own(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

#[cfg(not(unix))]
fn in_a_group_of_its_own(_: &mut Command) {}

/// A free port.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
    listener.local_addr().expect("it has an address").port()
}

fn takes_connections(server: &DbServer) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port));
    TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
}

/// The program, from `PATH` or where distributions put it; `None` with a loud word if it is not installed.
///
/// # Panics
/// In CI, where nothing may be skipped.
fn program(name: &str, others: impl IntoIterator<Item = PathBuf>, package: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin"].map(PathBuf::from);
    let found = others
        .into_iter()
        .chain(
            std::env::split_paths(&path)
                .chain(system)
                .map(|directory| directory.join(name)),
        )
        .find(|candidate| candidate.is_file());
    if found.is_none() {
        let word = format!("SKIPPED: `{name}` is not installed; install the package {package} to run this test");
        assert!(std::env::var_os("CI").is_none(), "{word}");
        say(&word);
    }
    found
}

/// Writes to the process's own stderr: what goes through `eprintln!` is not shown of a test that passes, as one does that
/// was skipped.
fn say(word: &str) {
    let _ = writeln!(io::stderr(), "{word}");
}

fn directory() -> io::Result<TempDir> {
    tempfile::Builder::new().prefix("mcp-tasks-server-").tempdir()
}
