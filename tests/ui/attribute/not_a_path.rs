use mcp_tasks::mcp_task;

#[mcp_task(guard = "guards::admin", crate = "my tasks")]
async fn encode() {}

fn main() {}
