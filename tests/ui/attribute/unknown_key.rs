use mcp_tasks::mcp_task;

#[mcp_task(tll = "PT1H")]
async fn encode() {}

fn main() {}
