use mcp_tasks::mcp_task;

#[mcp_task(name = 7, title = concat!("a", "b"), description)]
async fn encode() {}

fn main() {}
