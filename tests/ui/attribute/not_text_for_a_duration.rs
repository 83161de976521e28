use mcp_tasks::mcp_task;

const TTL: &str = "PT1H";

#[mcp_task(ttl = 3600, poll_interval = PT1S, grace = 2.5)]
async fn encode() {}

#[mcp_task(ttl = TTL)]
async fn transcode() {}

fn main() {}
