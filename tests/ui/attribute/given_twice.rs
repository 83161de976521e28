use mcp_tasks::mcp_task;

#[mcp_task(name = "a", title = "t", name = "b")]
async fn encode() {}

fn main() {}
