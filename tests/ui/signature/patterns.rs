#![allow(unused_variables)]

use mcp_tasks::mcp_task;

#[mcp_task]
async fn encode((width, height): (u32, u32), _: String) {}

fn main() {}
