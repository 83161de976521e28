//! Which node runs a task is one of two words, and does not go along with grace.

use mcp_tasks::prelude::*;

#[mcp_task(placement = "anywhere")]
async fn one() {}

#[mcp_task(placement)]
async fn two() {}

#[mcp_tool(placement = "any")]
async fn three() {}

#[mcp_task(placement = "any", grace = "PT1S")]
async fn four() {}

#[mcp_task(placement = "${where:elsewhere}")]
async fn five() {}

#[mcp_task(placement = "${where}", grace = "PT1S")]
async fn known_at_the_start() {}

#[mcp_task(placement = "local", grace = "PT1S")]
async fn fine() {}

fn main() {}
