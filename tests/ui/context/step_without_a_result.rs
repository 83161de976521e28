use mcp_tasks::{ToolContext, ToolError, mcp_task};

#[mcp_task]
async fn encode(ctx: ToolContext) -> Result<(), ToolError> {
    ctx.step("one", || async { 1 }).await?;
    Ok(())
}

fn main() {}
