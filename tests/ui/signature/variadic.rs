use mcp_tasks::mcp_task;

#[mcp_task]
unsafe extern "C" fn encode(first: u32, ...) {}

fn main() {}
