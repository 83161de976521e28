use mcp_tasks::mcp_task;

#[mcp_task(name: "encode")]
async fn encode() {}

fn main() {}
