#![allow(unused_variables)]

use mcp_tasks::mcp_task;

#[mcp_task]
async fn encode(uri: String)
where
    String: Clone,
{
}

fn main() {}
