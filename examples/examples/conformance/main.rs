//! The server that the official MCP conformance suite runs against.
//!
//! ```text
//! cargo run --release -p mcp-tasks-examples --example conformance -- --addr 127.0.0.1:8080
//! ```
//!
//! MCP is served at `/mcp`. The prompts, resources and plain tools that the suite's scenarios name are in
//! [`handler::Fixtures`], an ordinary rmcp handler.

mod changes;
mod content;
mod handler;
mod prompts;
mod questions;
mod resources;
mod rounds;
mod tools;

use std::{error::Error, net::SocketAddr, sync::Arc};

use axum::serve::ListenerExt;
use lexopt::ValueExt;
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};

use crate::handler::Fixtures;

const USAGE: &str = "usage: conformance [--addr HOST:PORT]";

/// Reads the address to listen on from the command line.
fn address() -> Result<SocketAddr, Box<dyn Error>> {
    let mut addr = SocketAddr::from(([127, 0, 0, 1], 8080));
    let mut args = lexopt::Parser::from_env();
    while let Some(arg) = args.next()? {
        match arg {
            lexopt::Arg::Long("addr") => addr = args.value()?.parse()?,
            other => return Err(format!("{}\n{USAGE}", other.unexpected()).into()),
        }
    }
    Ok(addr)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let fixtures = Fixtures::new()?;
    let mcp = StreamableHttpService::new(
        move || Ok(fixtures.session()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default().with_json_response(true),
    );
    let listener = tokio::net::TcpListener::bind(address()?).await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    let listener = listener.tap_io(|stream| {
        // Small answers to small requests: waiting to fill a packet only adds latency.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, axum::Router::new().nest_service("/mcp", mcp))
        .with_graceful_shutdown(async {
            let _ = tokio::signal::ctrl_c().await;
        })
        .await?;
    Ok(())
}
