use mcp_tasks::mcp_task;

#[mcp_task(ttl = "PT0S")]
async fn a() {}

#[mcp_task(ttl = "-PT1H")]
async fn b() {}

#[mcp_task(ttl = "P100000D")]
async fn c() {}

#[mcp_task(poll_interval = "PT0.0001S")]
async fn d() {}

#[mcp_task(poll_interval = "unlimited")]
async fn e() {}

fn main() {}
