use mcp_tasks::mcp_task;

#[mcp_task]
async unsafe fn a() {}

#[mcp_task]
extern "C" fn b() {}

#[mcp_task]
const fn c() {}

fn main() {}
