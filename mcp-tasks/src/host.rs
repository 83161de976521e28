//! The runtime, and the rmcp handler that puts its tools and the Tasks extension in front of a handler of the application.

#[cfg(feature = "__bench")]
pub mod bench;
pub(crate) mod capabilities;
pub(crate) mod extension;
pub(crate) mod handler;
pub(crate) mod operations;
pub(crate) mod runtime;
pub(crate) mod trace_context;
#[cfg_attr(
    not(feature = "http"),
    allow(dead_code, reason = "without HTTP rmcp writes the text of its own types")
)]
pub(crate) mod wire;

pub use mcp_tasks_core::Timestamp;

pub use self::handler::{NoHandler, TaskServer};
pub use self::runtime::{TaskRuntime, TaskRuntimeBuilder};
pub use crate::run::clock::{Clock, SystemClock, Timer};
