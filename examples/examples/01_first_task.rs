//! A tool that works for a while, asks the user, and goes on with the answer.
//!
//! ```text
//! cargo run -p mcp-tasks-examples --example 01_first_task
//! ```
//!
//! It serves MCP over Streamable HTTP at <http://127.0.0.1:8080/mcp>. `MCP_TASKS_HTTP_ADDR=127.0.0.1:9000` moves it, and
//! `MCP_TASKS_TRANSPORT=stdio` serves the client that starts the program. The README shows the requests of a client with
//! curl.

use std::time::Duration;

use mcp_tasks::prelude::*;

// What the user is asked. The doc comment of a field is what the client shows beside it.
#[derive(Deserialize, JsonSchema, ElicitForm)]
struct Confirm {
    /// Publish the report now
    publish: bool,
}

/// Render a report and, if the user agrees, publish it.
#[mcp_task(ttl = "PT2H", poll_interval = "PT1S")]
async fn report(
    ctx: ToolContext,
    /// How many pages to render
    pages: u32,
) -> Result<String, ToolError> {
    // The result of a step is kept: when the function runs again after the answer, nothing is rendered again.
    let size = ctx.step("render", || render(&ctx, pages)).await?;

    let question = format!("{pages} pages, {size} KB, are ready. Publish them?");
    match ctx.elicit::<Confirm>(question).await? {
        Elicited::Accept(Confirm { publish: true }) => Ok(format!("published {pages} pages")),
        _ => Ok("kept as a draft".to_owned()),
    }
}

/// Stands for work that takes longer than a client waits for a response.
async fn render(ctx: &ToolContext, pages: u32) -> Result<u32, ToolError> {
    if pages == 0 {
        return Err(ToolError::new("a report has at least one page"));
    }
    let mut done = ctx.count_to(pages.into());
    for page in 1..=pages {
        tokio::time::sleep(Duration::from_secs(1)).await;
        done.advance(1, format!("rendered page {page}"));
    }
    Ok(pages * 25)
}

#[tokio::main]
async fn main() -> mcp_tasks::Result<()> {
    mcp_tasks_examples::log_to_stderr();
    Server::from_env()?
        .name("reports", env!("CARGO_PKG_VERSION"))
        .on_ready(|place| eprintln!("the tool `report` is served at {place}; connect an MCP client to it"))
        .serve()
        .await
}
