use mcp_tasks::{State, mcp_task};

#[mcp_task]
async fn encode(state: State) {}

fn main() {}
