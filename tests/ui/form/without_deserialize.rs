use mcp_tasks::ElicitForm;

#[derive(ElicitForm)]
struct Order {
    count: u32,
}

fn main() {}
