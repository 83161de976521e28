use mcp_tasks::mcp_task;

#[mcp_task]
async fn encode() -> ! {
    panic!("no")
}

fn main() {}
