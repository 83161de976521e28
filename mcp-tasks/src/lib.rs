//! Durable, long-running MCP tools on rmcp: annotate an async function, get a task.

// So that what the attributes write, `::mcp_tasks::…`, is right in this crate too.
#[allow(unused_extern_crates, reason = "used by what the attributes write inside this crate")]
extern crate self as mcp_tasks;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
mod argument;
mod caller;
mod clock;
mod config;
mod context;
mod descriptor;
mod engine;
mod error;
mod form;
mod output;
mod registry;
mod request_state;
mod runtime;
mod schema;
mod serve;
mod settings;
mod start;
mod state;
mod store;
mod task_server;

pub use mcp_tasks_core::{InputKind, MemoryStore, Principal, TaskId, TaskStore};
pub use mcp_tasks_macros::{ElicitForm, mcp_task, mcp_tool};
pub use rmcp;
pub use schemars;
pub use serde;

pub use crate::argument::{Args, ArgumentProblem, Arguments, ToolArgument, invalid_arguments_result};
pub use crate::caller::{Caller, Denied, Guard};
pub use crate::clock::{Clock, SystemClock};
pub use crate::config::{Config, ConfigBuilder};
pub use crate::context::{Asking, Counter, ElicitError, Elicited, Fraction, Gauge, Progress, Retry, Step, ToolContext};
pub use crate::descriptor::{
    SourceLocation, StateRequirement, ToolDefinition, ToolDescriptor, ToolFunctions, ToolKind,
};
pub use crate::error::ToolError;
pub use crate::form::{ElicitChoice, ElicitField, ElicitForm, form_schema, form_schema_json};
pub use crate::output::{ToolFailure, ToolOutput};
pub use crate::runtime::{TaskRuntime, TaskRuntimeBuilder};
pub use crate::serve::{Error, Result, Server};
pub use crate::settings::{Secret, Settings, Transport};
pub use crate::start::{StartError, StartProblem, StartProblems};
pub use crate::state::State;
#[cfg(feature = "sqlite")]
pub use crate::store::sqlite::{Durability, SqliteOptions, SqliteStore};
pub use crate::task_server::{NoHandler, TaskServer};

pub mod prelude;
