//! What the rmcp handler is: our tools and the Tasks extension in front of a handler of the application's.

#[cfg(feature = "__bench")]
pub mod bench;
pub(crate) mod runtime;
pub(crate) mod task_server;

pub use mcp_tasks_core::Timestamp;

pub use self::runtime::{TaskRuntime, TaskRuntimeBuilder};
pub use self::task_server::{NoHandler, TaskServer};
pub use crate::run::clock::{Clock, SystemClock, Timer};
