use mcp_tasks::mcp_task;

#[mcp_task]
#[mcp_tasks::mcp_tool]
async fn encode(_uri: String) {}

fn main() {
    let _ = encode(String::new());
}
