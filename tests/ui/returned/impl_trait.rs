use mcp_tasks::mcp_task;

#[mcp_task]
fn encode() -> impl Future<Output = String> {
    std::future::ready(String::new())
}

fn main() {}
