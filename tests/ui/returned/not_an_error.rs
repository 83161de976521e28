use mcp_tasks::mcp_task;

struct Failed;

#[mcp_task]
async fn encode() -> Result<String, Failed> {
    Err(Failed)
}

fn main() {}
