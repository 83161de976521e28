//! The server that the official MCP conformance suite runs against.
//!
//! ```text
//! cargo run --release -p mcp-tasks-examples --example conformance -- --addr 127.0.0.1:8080 --store sqlite:tasks.db
//! ```
//!
//! Without `--store`, and without `mcp.tasks.store.url` in the environment, tasks are in memory.
//!
//! MCP is served at `/mcp`. The prompts, resources and plain tools that the suite's scenarios name are in
//! [`handler::Fixtures`], an ordinary rmcp handler; the tools of its task scenarios are in [`tasks`], and the server adds
//! them to the handler.

mod changes;
mod content;
mod handler;
mod prompts;
mod questions;
mod resources;
mod rounds;
mod tasks;
mod tools;

use std::error::Error;

use lexopt::ValueExt;
use mcp_tasks::{Config, Server, TaskRuntime};

use crate::handler::Fixtures;

const USAGE: &str = "usage: conformance [--addr HOST:PORT] [--front true|false] [--store URL]";

/// Reads the configuration from the command line.
fn config() -> Result<Config, Box<dyn Error>> {
    let mut config = Config::builder();
    let mut args = lexopt::Parser::from_env();
    while let Some(arg) = args.next()? {
        config = match arg {
            lexopt::Arg::Long("addr") => config.set("mcp.tasks.http.addr", args.value()?.string()?),
            lexopt::Arg::Long("front") => config.set("mcp.tasks.http.front", args.value()?.string()?),
            lexopt::Arg::Long("store") => config.set("mcp.tasks.store.url", args.value()?.string()?),
            other => return Err(format!("{}\n{USAGE}", other.unexpected()).into()),
        }
    }
    Ok(config.build()?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(tracing::Level::WARN)
        .init();
    let runtime = TaskRuntime::builder().config(config()?).build()?;
    let fixtures = Fixtures::new();
    Server::wrapping(runtime, move || fixtures.session())?
        .on_ready(|url| println!("listening on {url}"))
        .serve()
        .await?;
    Ok(())
}
