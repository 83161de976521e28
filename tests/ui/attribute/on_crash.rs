//! What becomes of a task whose node is gone is one of two words.

use mcp_tasks::prelude::*;

#[mcp_task(on_crash = "retry")]
async fn one() {}

#[mcp_task(on_crash)]
async fn two() {}

#[mcp_tool(on_crash = "fail")]
async fn three() {}

fn main() {}
