//! A server that was written with rmcp gets tasks: its handler is wrapped, and everything else stays as it is.
//!
//! ```text
//! cargo run -p mcp-tasks-examples --example 03_wrap_rmcp_server
//! ```
//!
//! It serves MCP over Streamable HTTP at <http://127.0.0.1:8080/mcp>, or at the address given as an argument. The tools
//! `add_note` and `list_notes` are rmcp's; `summarize` is a task. `/healthz` is the application's own.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use mcp_tasks::prelude::*;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, tool, tool_handler, tool_router};

// The server as it was: rmcp's own macros, handler and transport.

#[derive(Clone, Default)]
struct Notes {
    notes: Arc<Mutex<Vec<String>>>,
}

impl Notes {
    fn with<T>(&self, use_them: impl FnOnce(&mut Vec<String>) -> T) -> T {
        use_them(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Deserialize, JsonSchema)]
struct Note {
    /// The note
    text: String,
}

#[tool_router]
impl Notes {
    /// Add a note.
    #[tool]
    async fn add_note(&self, Parameters(note): Parameters<Note>) -> String {
        self.with(|notes| {
            notes.push(note.text);
            format!("{} notes", notes.len())
        })
    }

    /// List all notes.
    #[tool]
    async fn list_notes(&self) -> String {
        self.with(|notes| notes.join("\n"))
    }
}

#[tool_handler(name = "notes", version = "1.0.0")]
impl ServerHandler for Notes {}

// What is new: a task tool, which shares the notes, …

/// Summarize all notes, which takes a second for each.
#[mcp_task(ttl = "PT10M", poll_interval = "PT1S")]
async fn summarize(ctx: ToolContext, notes: State<Notes>) -> Result<String, ToolError> {
    let texts = notes.with(|notes| notes.clone());
    if texts.is_empty() {
        return Err(ToolError::new("there are no notes yet; add some with add_note"));
    }
    let mut done = ctx.count_to(texts.len() as u64);
    let mut words = 0;
    for text in &texts {
        tokio::time::sleep(Duration::from_secs(1)).await;
        words += text.split_whitespace().count();
        done.advance(1, format!("read {text:?}"));
    }
    Ok(format!("{} notes with {words} words", texts.len()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    mcp_tasks_examples::log_to_stderr();
    let addr = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let notes = Notes::default();

    // … and a runtime, which wraps the handler that rmcp asks for per session or request.
    let runtime = TaskRuntime::builder().state(notes.clone()).build()?;
    // Once at start-up, so that a clash of tool names ends the program here and not with the first request.
    runtime.wrap(notes.clone())?;
    let wrapping = runtime.clone();
    let service = StreamableHttpService::new(
        move || wrapping.wrap(notes.clone()).map_err(io::Error::other),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default().with_json_response(true),
    );

    let app = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route_service("/mcp", service);
    let listener = tokio::net::TcpListener::bind(&addr).await?;
    eprintln!(
        "notes are served at http://{}/mcp; connect an MCP client to it",
        listener.local_addr()?
    );
    tokio::select! {
        served = axum::serve(listener, app) => served?,
        stopped = tokio::signal::ctrl_c() => stopped?,
    }
    // Tasks that still run get some seconds to end.
    let left = runtime.shutdown(Duration::from_secs(5)).await;
    if left > 0 {
        eprintln!("{left} tasks were stopped");
    }
    Ok(())
}
