//! What the rmcp handler is: our tools and the Tasks extension in front of a handler of the application's.

pub(crate) mod runtime;
pub(crate) mod task_server;
