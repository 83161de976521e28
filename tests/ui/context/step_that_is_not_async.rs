use mcp_tasks::{Retry, ToolContext, ToolError, mcp_task};

#[mcp_task]
async fn encode(ctx: ToolContext) -> Result<(), ToolError> {
    ctx.step("one", || Ok::<u8, ToolError>(1)).await?;
    ctx.step_with_retry("two", Retry::times(2), || 2).await?;
    Ok(())
}

fn main() {}
