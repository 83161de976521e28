use mcp_tasks::mcp_task;

struct State<T>(T);

#[mcp_task]
async fn encode(state: State<u8>) {
    let _ = state.0;
}

fn main() {}
