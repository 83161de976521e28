use mcp_tasks::mcp_tool;

#[mcp_tool(ttl = "PT1H", poll_interval = "PT1S", required, version = "1")]
async fn encode() {}

fn main() {}
