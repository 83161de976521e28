use mcp_tasks::{ToolContext, ToolError, mcp_task};

#[mcp_task]
async fn encode(ctx: ToolContext) -> Result<(), ToolError> {
    ctx.step("one", || Ok::<u8, ToolError>(1)).await?;
    Ok(())
}

fn main() {}
