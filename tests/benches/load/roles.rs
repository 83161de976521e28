//! This program as one of the servers.

mod limit;
mod ours;

use std::io::Read;

use mcp_tasks_tests::rmcp_server::RmcpServer;
use tokio::runtime::Runtime;
use tracing_subscriber::EnvFilter;

use crate::options::{Options, Role};

/// Serves until the process that started this one is gone.
pub(crate) fn run(role: Role, options: &Options) -> anyhow::Result<()> {
    // As the README has it, with what a server says of its start left out, and rmcp's line for each error that is asked for.
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_env_filter(EnvFilter::new("warn,rmcp=error"))
        .init();
    let mut input = std::io::stdin();
    let answers = match role {
        Role::Limit => Some(limit::Answers::read(&mut input)?),
        Role::Ours | Role::Rmcp => None,
    };
    // The pipe ends with the benchmark, whichever way that ends; a server must not be left over.
    std::thread::spawn(move || {
        let _ = input.read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let runtime = Runtime::new()?;
    match (role, answers) {
        (Role::Limit, Some(answers)) => runtime.block_on(limit::serve(answers, ready)),
        (Role::Rmcp, _) => runtime.block_on(async {
            let server = RmcpServer::new();
            for _ in 0..options.preload.parked {
                server.park();
            }
            Ok(server.serve("127.0.0.1:0", ready).await?)
        }),
        _ => runtime.block_on(ours::serve(&options.preload, ready)),
    }
}

/// Tells the benchmark where this server listens.
fn ready(url: &str) {
    println!("{url}");
}
