use mcp_tasks::mcp_task;

#[mcp_task(required = "yes", idempotent = 1)]
async fn encode() {}

fn main() {}
