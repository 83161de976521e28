use std::sync::Arc;

use mcp_tasks::{State, mcp_task};

struct Db;

#[mcp_task]
async fn encode(State(db): State<Db>) {
    let db: Arc<Db> = db;
    let _: Db = db;
}

fn main() {}
