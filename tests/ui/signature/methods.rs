#![allow(unused_variables)]

use mcp_tasks::mcp_task;

struct Encoder;

impl Encoder {
    #[mcp_task]
    async fn encode(&self, uri: String) {}

    #[mcp_task]
    async fn new() -> Self {
        Self
    }
}

fn main() {}
