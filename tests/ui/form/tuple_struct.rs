use mcp_tasks::ElicitForm;
use mcp_tasks::schemars::JsonSchema;
use mcp_tasks::serde::Deserialize;

#[derive(Deserialize, JsonSchema, ElicitForm)]
#[serde(crate = "mcp_tasks::serde")]
#[schemars(crate = "mcp_tasks::schemars")]
struct Order(u32);

fn ask<F: ElicitForm>() {}

fn main() {
    // It resolves: one mistake, one error.
    ask::<Order>();
}
