use mcp_tasks::{ToolContext as Context, mcp_task};

#[mcp_task]
async fn encode(ctx: Context) {
    let _ = ctx;
}

fn main() {}
