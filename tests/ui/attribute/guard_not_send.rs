use std::rc::Rc;

use mcp_tasks::{Caller, Denied, mcp_task};

async fn admin(_: &Caller) -> Result<(), Denied> {
    let name = Rc::new(0);
    std::future::ready(()).await;
    drop(name);
    Ok(())
}

#[mcp_task(guard = admin)]
async fn encode() {}

fn main() {}
