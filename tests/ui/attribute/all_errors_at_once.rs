#![allow(unused_variables)]

use mcp_tasks::mcp_task;

#[mcp_task(ttl = "P1M", color = "red")]
async fn encode(uri: &str, (width, height): (u32, u32)) -> impl Sized {}

fn main() {}
