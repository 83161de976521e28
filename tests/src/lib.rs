//! What the test binaries and benchmarks share.

pub mod certificates;
pub mod dice;
pub mod faults;
pub mod patience;
pub mod rmcp_server;
pub mod servers;
pub mod table;
