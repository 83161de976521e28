//! Tools whose calls become tasks on the way, or never.

use std::time::Duration;

use mcp_tasks::prelude::*;

use super::{go, step};
use crate::harness::Log;

/// Two rounds of the call, then a task that asks too.
#[mcp_task(defer)]
pub(super) async fn deferred(ctx: ToolContext, work: State<Log>, stop: Option<bool>) -> Result<String, ToolError> {
    let before = step(&ctx, &work, "before").await?;
    let first = go(&ctx, "first?").await?;
    if stop == Some(true) {
        return Ok("stopped".to_owned());
    }
    ctx.defer().await?;
    let after = step(&ctx, &work, "after").await?;
    let second = go(&ctx, "second?").await?;
    ctx.defer().await?;
    Ok(format!("{before} {first} {after} {second} {}", ctx.task_id().is_some()))
}

/// As `deferred`, for clients with tasks alone.
#[mcp_task(required = true, defer)]
pub(super) async fn deferred_only(ctx: ToolContext) -> Result<String, ToolError> {
    let first = go(&ctx, "first?").await?;
    ctx.defer().await?;
    Ok(first.to_string())
}

/// Defers and must not.
#[mcp_task]
pub(super) async fn not_deferred(ctx: ToolContext) -> Result<String, ToolError> {
    ctx.defer().await?;
    Ok("deferred".to_owned())
}

/// Works for a while, of which 300 ms are within the call.
#[mcp_task(grace = "PT0.3S", ttl = "PT1H")]
pub(super) async fn graceful(
    ctx: ToolContext,
    work: State<Log>,
    millis: u64,
    then: String,
) -> Result<String, ToolError> {
    work.push("started");
    let one = step(&ctx, &work, "one").await?;
    ctx.progress(1.0).total(2.0).message("begun").send();
    tokio::time::sleep(Duration::from_millis(millis)).await;
    match then.as_str() {
        // No step after this, which would wait for the store.
        "end at once" => return Ok("ended".to_owned()),
        "panic at once" => panic!("secret"),
        "ask at once" => return Ok(go(&ctx, "go?").await?.to_string()),
        _ => {}
    }
    let two = step(&ctx, &work, "two").await?;
    match then.as_str() {
        "ask" => return Ok(format!("{one} {two} {}", go(&ctx, "go?").await?)),
        "fail" => return Err(ToolError::new("as it must")),
        "break" => {
            let error = mcp_tasks::rmcp::ErrorData::internal_error("broken", None);
            return Err(ToolError::protocol(error));
        }
        "panic" => panic!("secret"),
        _ => {}
    }
    work.push("ended");
    Ok(format!("{one} {two}"))
}

/// Asks as a tool that is never a task.
#[mcp_tool]
pub(super) async fn pass_round(ctx: ToolContext) -> Result<String, ToolError> {
    Ok(go(&ctx, "go?").await?.to_string())
}
