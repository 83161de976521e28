//! What the test binaries and benchmarks share.

pub mod rmcp_server;
pub mod servers;
