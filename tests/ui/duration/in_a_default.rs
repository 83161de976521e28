use mcp_tasks::mcp_task;

#[mcp_task(ttl = "${video.ttl:P1M}")]
async fn encode() {}

fn main() {}
