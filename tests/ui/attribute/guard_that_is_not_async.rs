use mcp_tasks::{Caller, Denied, mcp_task};

fn answers_bool(_: &Caller) -> bool {
    true
}

async fn answers_later_with_bool(_: &Caller) -> bool {
    true
}

fn answers_at_once(_: &Caller) -> Result<(), Denied> {
    Ok(())
}

#[mcp_task(guard = answers_bool)]
async fn one() {}

#[mcp_task(guard = answers_later_with_bool)]
async fn two() {}

#[mcp_task(guard = answers_at_once)]
async fn three() {}

fn main() {}
