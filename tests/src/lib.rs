//! What the test binaries and benchmarks share.

pub mod certificates;
pub mod patience;
pub mod rmcp_server;
pub mod scripted;
pub mod servers;
pub mod table;
