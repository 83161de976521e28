use mcp_tasks::mcp_task;

#[mcp_task(ttl = "P1M")]
async fn a() {}

#[mcp_task(ttl = "P1Y")]
async fn b() {}

fn main() {}
