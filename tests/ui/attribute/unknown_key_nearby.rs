use mcp_tasks::mcp_task;

#[mcp_task(tll = "PT1H", timeout = "PT1H", poll = "PT1S", readonly, on_krash = "fail", x)]
async fn encode() {}

fn main() {}
