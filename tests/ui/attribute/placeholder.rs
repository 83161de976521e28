use mcp_tasks::mcp_task;

#[mcp_task(name = "${", title = "${a${b}}", description = "${a b}")]
async fn encode() {}

fn main() {}
