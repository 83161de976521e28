use mcp_tasks::mcp_task;

#[mcp_task(nmae = "x")]
async fn encode(
    /// Where it is
    uri: String,
) -> String {
    uri
}

fn register<T: mcp_tasks::tool::ToolDefinition>() {}

pub async fn call() -> usize {
    register::<encode>();
    encode(String::new()).await.len()
}

fn main() {}
