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

const USAGE: &str = "usage: conformance [--addr HOST:PORT] [--store URL]";

/// What the command line says.
struct Arguments {
    addr: String,
    store: Option<String>,
}

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let mut read = Arguments {
        addr: "127.0.0.1:8080".to_owned(),
        store: None,
    };
    let mut args = lexopt::Parser::from_env();
    while let Some(arg) = args.next()? {
        match arg {
            lexopt::Arg::Long("addr") => read.addr = args.value()?.string()?,
            lexopt::Arg::Long("store") => read.store = Some(args.value()?.string()?),
            other => return Err(format!("{}\n{USAGE}", other.unexpected()).into()),
        }
    }
    Ok(read)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(tracing::Level::WARN)
        .init();
    let arguments = arguments()?;
    let mut config = Config::builder().set("mcp.tasks.http.addr", arguments.addr);
    if let Some(store) = arguments.store {
        config = config.set("mcp.tasks.store.url", store);
    }
    let runtime = TaskRuntime::builder().config(config.build()?).build()?;
    let fixtures = Fixtures::new();
    Server::wrapping(runtime, move || fixtures.session())?
        .on_ready(|url| println!("listening on {url}"))
        .serve()
        .await?;
    Ok(())
}
