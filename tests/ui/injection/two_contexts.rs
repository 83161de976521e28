#![allow(unused_variables)]

use mcp_tasks::{ToolContext, mcp_task};

#[mcp_task]
async fn encode(a: ToolContext, b: ToolContext) {}

fn main() {}
