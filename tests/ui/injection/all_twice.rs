#![allow(unused_variables)]

use mcp_tasks::{Args, mcp_task};

#[mcp_task]
async fn encode(all: Args<u8>, more: Args<u8>) {}

fn main() {}
