use mcp_tasks::mcp_task;

#[doc = include_str!("description.md")]
#[mcp_task]
async fn encode() {}

fn main() {}
