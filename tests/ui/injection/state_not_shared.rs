use std::cell::Cell;

use mcp_tasks::{State, mcp_tool};

#[mcp_tool]
fn encode(state: State<Cell<u8>>) {
    let _ = state;
}

fn main() {}
