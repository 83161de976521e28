//! A server as a process of its own.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;
use mcp_tasks::TaskId;

use crate::operation::Requests;
use crate::options::{Preload, Role};
use crate::process::{Usage, usage};

/// A command to run the server that is profiled under; see `PROFILING.md`. CPU and memory are the command's then.
const UNDER: &str = "LOAD_UNDER";

/// The bodies that our server answered with, by the names of the requests.
pub(crate) type Answers = BTreeMap<String, String>;

/// The id of the parked task of this number; the benchmark and the server make it alike.
pub(crate) fn parked_id(number: u64) -> TaskId {
    TaskId::from_entropy(spread(number).to_be_bytes())
}

/// The id of the expiring task of this number.
pub(crate) fn expiring_id(number: u64) -> TaskId {
    TaskId::from_entropy(spread((1 << 63) | number).to_be_bytes())
}

/// Spreads numbers over all the bits, as random ids are: a multiplication by an odd number maps no two to one.
const fn spread(number: u64) -> u128 {
    // The fraction of the golden ratio, whose multiples lie evenly.
    (number as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
}

/// A running server, killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) role: Role,
    pub(crate) address: SocketAddr,
    pub(crate) requests: Requests,
    child: Child,
    /// Whether it is to end by itself.
    is_profiled: bool,
}

impl Server {
    /// Starts one. The limit has to be told what to answer.
    pub(crate) fn start(role: Role, preload: &Preload, answers: &Answers) -> anyhow::Result<Self> {
        Self::launch(Command::new(std::env::current_exe()?), role, preload, answers, false)
    }

    /// An empty server under what [`UNDER`] says.
    pub(crate) fn profiled(role: Role, answers: &Answers) -> anyhow::Result<Self> {
        let program = std::env::current_exe()?;
        let under = std::env::var(UNDER).unwrap_or_default();
        let mut words = under.split_whitespace();
        let command = match words.next() {
            Some(first) => {
                let mut command = Command::new(first);
                command.args(words).arg(program);
                command
            }
            None => Command::new(program),
        };
        Self::launch(command, role, &Preload::default(), answers, true)
    }

    fn launch(
        mut command: Command,
        role: Role,
        preload: &Preload,
        answers: &Answers,
        is_profiled: bool,
    ) -> anyhow::Result<Self> {
        command
            .args(["--role", role.as_str()])
            .args(["--preload", &preload.parked.to_string()])
            .args(["--expiring", &preload.expiring.to_string()])
            .args(["--expires-in-ms", &preload.expires_in.as_millis().to_string()])
            // Nothing of this shell's settings.
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start a server")?;
        // It ends with this pipe, which is closed when the child is dropped, so it is not taken out of it.
        if role == Role::Limit
            && let Some(input) = &mut child.stdin
        {
            writeln!(input, "{}", serde_json::to_string(answers)?)?;
        }
        let mut url = String::new();
        let output = child.stdout.take().context("a server without output")?;
        BufReader::new(output).read_line(&mut url)?;
        let authority = url
            .trim()
            .strip_prefix("http://")
            .and_then(|rest| rest.strip_suffix("/mcp"))
            .with_context(|| format!("the server `{}` did not start", role.as_str()))?;
        Ok(Self {
            role,
            address: authority.parse()?,
            requests: Requests::new(role, authority),
            child,
            is_profiled,
        })
    }

    /// An empty server of ours or rmcp's.
    pub(crate) fn empty(role: Role) -> anyhow::Result<Self> {
        Self::start(role, &Preload::default(), &Answers::new())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn usage(&self) -> Option<Usage> {
        usage(self.child.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.is_profiled {
            // A profiler writes down what it saw once the server has ended, which it does with this pipe.
            drop(self.child.stdin.take());
        } else {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
