use mcp_tasks::mcp_tool;

#[mcp_tool(reqired)]
async fn encode() {}

fn main() {}
