//! What a file with tools in it needs: `use mcp_tasks::prelude::*;`.
//!
//! The derives of serde and schemars in it write `::serde` and `::schemars`, so a crate that uses them needs both as
//! dependencies of its own, or says where they are: `#[serde(crate = "mcp_tasks::serde")]` and
//! `#[schemars(crate = "mcp_tasks::schemars")]` on each type. A tool whose arguments and results are types of the standard
//! library needs neither.

pub use crate::{
    Args, Caller, Denied, ElicitError, ElicitForm, Elicited, Principal, Retry, Server, State, TaskRuntime, ToolContext,
    ToolError, mcp_task, mcp_tool,
};
pub use schemars::JsonSchema;
pub use serde::{Deserialize, Serialize};
