use mcp_tasks::{Denied, mcp_task};

async fn admin(name: String) -> Result<(), Denied> {
    Err(Denied::new(name))
}

#[mcp_task(guard = admin)]
async fn encode() {}

fn main() {}
