#![allow(unused_variables)]

use mcp_tasks::mcp_task;

#[mcp_task]
async fn encode<T>(uri: T) {}

fn main() {}
