#![allow(unused_variables)]

use mcp_tasks::mcp_task;

#[mcp_task]
async fn text(uri: &str) {}

#[mcp_task]
async fn list(sizes: &[u8], rest: Option<&std::path::PathBuf>) {}

#[mcp_task]
async fn whole(all: mcp_tasks::Args<&str>) {}

fn main() {}
