//! What the command line says.

use std::time::Duration;

use anyhow::{Context as _, bail};
use lexopt::prelude::*;

const USAGE: &str = "\
usage: cargo bench -p mcp-tasks-tests --bench load -- [--quick] [SECTION]...

Without a SECTION all of them: polls, calls, stored, parked, creation, expiry, listeners.
        Two more, profile and profile-limit, are for looking into a server: see tests/benches/PROFILING.md.
  --quick   a smoke run: a few requests of everything; its numbers mean nothing";

/// The server to be, when this program starts itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Ours,
    Rmcp,
    Limit,
}

impl Role {
    pub(crate) const ALL: [Self; 3] = [Self::Ours, Self::Limit, Self::Rmcp];

    /// As the role is named on the command line.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Rmcp => "rmcp",
            Self::Limit => "limit",
        }
    }
}

/// What a server starts with.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Preload {
    /// Tasks that are parked at a question and live for an hour.
    pub(crate) parked: u64,
    /// Tasks that expire so long after the server is ready.
    pub(crate) expiring: u64,
    /// See above.
    pub(crate) expires_in: Duration,
}

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// Whether this is a smoke run.
    pub(crate) quick: bool,
    /// How often each measurement is made, in turn with those it is compared with.
    pub(crate) rounds: usize,
    /// How long one takes.
    pub(crate) slot: Duration,
}

impl Effort {
    /// Seven rounds have a median that one disturbed round on either side does not move; a third of a second is thousands
    /// of requests, and thirty ticks of the clock that counts a process's CPU.
    const FULL: Self = Self {
        quick: false,
        rounds: 7,
        slot: Duration::from_millis(350),
    };
    const QUICK: Self = Self {
        quick: true,
        rounds: 1,
        slot: Duration::from_millis(40),
    };

    /// One of two sizes.
    pub(crate) const fn pick<T: Copy>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }
}

/// What the command line says.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) role: Option<Role>,
    pub(crate) preload: Preload,
    pub(crate) effort: Effort,
    /// Sections to run; all of them if it is empty.
    pub(crate) sections: Vec<String>,
}

impl Options {
    pub(crate) fn read() -> anyhow::Result<Self> {
        let mut options = Self {
            role: None,
            preload: Preload::default(),
            effort: Effort::FULL,
            sections: Vec::new(),
        };
        let mut arguments = lexopt::Parser::from_env();
        while let Some(argument) = arguments.next()? {
            match argument {
                // Cargo adds it.
                Long("bench") => {}
                Long("quick") => options.effort = Effort::QUICK,
                Long("role") => {
                    let name = arguments.value()?.string()?;
                    let role = Role::ALL.into_iter().find(|role| role.as_str() == name);
                    options.role = Some(role.with_context(|| format!("there is no role {name}"))?);
                }
                Long("preload") => options.preload.parked = arguments.value()?.parse()?,
                Long("expiring") => options.preload.expiring = arguments.value()?.parse()?,
                Long("expires-in-ms") => {
                    options.preload.expires_in = Duration::from_millis(arguments.value()?.parse()?);
                }
                Long("help") => {
                    println!("{USAGE}");
                    std::process::exit(0);
                }
                Value(section) => options.sections.push(section.string()?),
                other => bail!("{}\n{USAGE}", other.unexpected()),
            }
        }
        Ok(options)
    }
}
