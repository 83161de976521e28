#![allow(unused_variables)]

use mcp_tasks::mcp_task;

#[mcp_task]
async fn encode(
    /// Where it is
    uri: String,
    #[serde(default)] height: u32,
    #[cfg(unix)] mode: u32,
    #[allow(unused_variables)] width: u32,
    #[doc = include_str!("../attribute/description.md")] depth: u32,
) {
}

fn main() {}
