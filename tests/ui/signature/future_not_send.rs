use std::rc::Rc;

use mcp_tasks::mcp_task;

#[mcp_task]
async fn encode() {
    let shared = Rc::new(1);
    std::future::ready(()).await;
    drop(shared);
}

fn main() {}
