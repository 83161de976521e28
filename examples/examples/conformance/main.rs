//! The server that the official MCP conformance suite runs against.
//!
//! ```text
//! cargo run --release -p mcp-tasks-examples --example conformance -- --addr 127.0.0.1:8080
//! ```
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

const USAGE: &str = "usage: conformance [--addr HOST:PORT]";

/// Reads the address to listen on from the command line.
fn address() -> Result<String, Box<dyn Error>> {
    let mut addr = "127.0.0.1:8080".to_owned();
    let mut args = lexopt::Parser::from_env();
    while let Some(arg) = args.next()? {
        match arg {
            lexopt::Arg::Long("addr") => addr = args.value()?.string()?,
            other => return Err(format!("{}\n{USAGE}", other.unexpected()).into()),
        }
    }
    Ok(addr)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(tracing::Level::WARN)
        .init();
    let config = Config::builder().set("mcp.tasks.http.addr", address()?).build()?;
    let runtime = TaskRuntime::builder().config(config).build()?;
    let fixtures = Fixtures::new();
    Server::wrapping(runtime, move || fixtures.session())?
        .on_ready(|url| println!("listening on {url}"))
        .serve()
        .await?;
    Ok(())
}
