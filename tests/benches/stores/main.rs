//! Each store of tasks, beside its driver doing the same reads and writes by hand.
//!
//! ```text
//! cargo bench -p mcp-tasks-tests --bench stores                          # every store, some two minutes
//! cargo bench -p mcp-tasks-tests --bench stores -- --quick               # whether it runs
//! cargo bench -p mcp-tasks-tests --bench stores -- redis nats            # stores by name
//! cargo bench -p mcp-tasks-tests --bench stores -- sqlite --only get     # one operation, for a profiler
//! ```
//!
//! Both work on the same file or server, in the same tables or keys, in turn: a few hundredths of a second each, many times.
//! What is compared is each such turn with the one next to it, so that a machine that slows down for a while slows down both.
//! The report is Markdown, one table a store:
//!
//! * **store**, **by hand**: the median time of an operation, in microseconds;
//! * **ratio**: the median of the ratios of two turns next to each other;
//! * **CPU**: what this process used for an operation, all its threads, in microseconds, and the ratio. What the database
//!   server uses is not in it. It says more than times do where something else runs on the machine.
//!
//! # What is compared
//!
//! The driver by hand makes the reads and writes of the store: the same statement, command or script, the same number of round
//! trips, a record's text of the same length, in the same durability, and a write that fails unless what is there is as
//! expected. It leaves out what a store of tasks has to do besides: it neither parses the record it read nor writes one as
//! JSON, runs no mutation, draws no random version, has no time-out, mends no connection, and has one connection for all.
//! With SQLite it does what an async program has to do, as does the store: what a write costs ends with a flush or a wait for
//! another process, so it is made with `spawn_blocking`; a row is read on the thread that asks, from a connection of its own.
//!
//! Every operation is done from a task of a runtime with one thread; the SQLite store has threads of its own besides. "64 at once" is the time for all 64 of
//! them: by hand these are 64 tasks which look, write if nothing was written meanwhile, and look again if it was. Files lie in
//! `TMPDIR`: what a commit costs is what flushing costs there. A record has five steps in its ledger.

mod compare;
mod measure;
mod nats;
mod options;
mod postgres;
mod redis;
mod sqlite;
mod work;

use std::process::ExitCode;

use options::Options;
use work::Bench;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stores: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Bench<()> {
    let options = Options::read()?;
    for (name, compare) in options::STORES {
        if options.wants(name) {
            eprintln!("{name} …");
            compare(&options)?;
        }
    }
    Ok(())
}
