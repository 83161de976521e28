use mcp_tasks::{ToolError, mcp_task};

struct Encoded;

#[mcp_task]
async fn encode() -> Result<Encoded, ToolError> {
    Ok(Encoded)
}

fn main() {}
