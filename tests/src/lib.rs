//! What the test binaries and benchmarks share.

pub mod certificates;
#[cfg(test)]
mod floors;
pub mod patience;
pub mod rmcp_server;
pub mod scripted;
pub mod servers;
pub mod table;
