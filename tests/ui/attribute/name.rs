use mcp_tasks::mcp_task;

#[mcp_task(name = "re encode")]
async fn one() {}

#[mcp_task]
async fn zwölf() {}

fn main() {}
