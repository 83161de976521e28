use mcp_tasks::mcp_task;

struct Encoded;

#[mcp_task]
async fn encode() -> Encoded {
    Encoded
}

fn main() {}
