#![allow(unused_variables)]

use mcp_tasks::{Args, mcp_task};

#[mcp_task]
async fn encode(all: Args<Vec<u8>>, uri: String) {}

fn main() {}
