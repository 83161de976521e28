//! What a file with tools in it needs: `use mcp_tasks::prelude::*;`.
//!
//! It brings serde's and schemars' derives along, which work without a dependency of one's own on either crate when
//! they are told where it is: `#[serde(crate = "mcp_tasks::serde")]`, `#[schemars(crate = "mcp_tasks::schemars")]`.

pub use crate::{
    Args, Caller, Denied, ElicitError, ElicitForm, Elicited, Server, State, TaskRuntime, ToolContext, ToolError,
    mcp_task, mcp_tool,
};
pub use schemars::JsonSchema;
pub use serde::{Deserialize, Serialize};
