//! Whole servers under load, over HTTP on the loopback: ours, one on rmcp's own `TaskManager`, and the limit, which is a
//! bare axum handler that reads a request, parses nothing and answers what ours answered.
//!
//! ```text
//! cargo bench -p mcp-tasks-tests --bench load                   # everything, some minutes
//! cargo bench -p mcp-tasks-tests --bench load -- --quick        # whether it runs and every answer is right
//! cargo bench -p mcp-tasks-tests --bench load -- polls calls    # sections by name
//! ```
//!
//! Each server is a process of its own, started from this program in another role, and works in turn with the others in
//! one run, so that a machine that slows down slows down all. This process is the load generator: a closed loop of
//! prepared requests, in which every answer is checked and a wrong one ends the run. What servers cost is read from the
//! system, so the generator's own work is not in it (Linux; elsewhere that column stays empty).
//!
//! The report is Markdown on stdout; what is going on is told on stderr.

mod drive;
mod http;
mod operation;
mod options;
mod process;
mod request;
mod roles;
mod sections;
mod server;
mod table;

use std::process::ExitCode;

use crate::options::Options;

fn main() -> ExitCode {
    let done = Options::read().and_then(|options| match options.role {
        Some(role) => roles::run(role, &options),
        None => sections::run(&options),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load: {error:#}");
            ExitCode::FAILURE
        }
    }
}
