use mcp_tasks::mcp_task;

#[mcp_task(ttl = "PT1M", poll_interval = "${poll:PT2M}")]
async fn encode() {}

fn main() {}
