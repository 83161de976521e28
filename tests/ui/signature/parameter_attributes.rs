#![allow(unused_variables)]

use mcp_tasks::mcp_task;

#[mcp_task]
async fn encode(
    /// Where it is
    uri: String,
    #[serde(default)] height: u32,
    #[cfg(unix)] mode: u32,
) {
}

fn main() {}
