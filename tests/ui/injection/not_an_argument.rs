use mcp_tasks::mcp_task;

struct Encoder;

#[mcp_task]
async fn encode(encoder: Encoder) {
    let _ = encoder;
}

fn main() {}
