use mcp_tasks::ElicitForm;
use mcp_tasks::schemars::JsonSchema;
use mcp_tasks::serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "mcp_tasks::serde")]
#[schemars(crate = "mcp_tasks::schemars")]
struct Address {
    city: String,
}

#[derive(Deserialize, JsonSchema, ElicitForm)]
#[serde(crate = "mcp_tasks::serde")]
#[schemars(crate = "mcp_tasks::schemars")]
struct Order {
    count: u32,
    address: Address,
}

fn main() {}
