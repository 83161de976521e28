use mcp_tasks::mcp_task;

#[mcp_task(ttl = "P")]
async fn a() {}

#[mcp_task(ttl = "1H")]
async fn b() {}

#[mcp_task(ttl = "")]
async fn c() {}

#[mcp_task(ttl = "PT1M1H")]
async fn d() {}

fn main() {}
