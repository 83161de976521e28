#![allow(unused_variables)]

use mcp_tasks::mcp_task;

#[mcp_task]
async fn encode(uri: Vec<impl Into<String>>) {}

fn main() {}
