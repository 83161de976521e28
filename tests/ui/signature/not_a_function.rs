use mcp_tasks::mcp_task;

#[mcp_task]
struct Encode;

fn main() {}
