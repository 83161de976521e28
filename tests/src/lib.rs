//! What the test binaries and benchmarks share.

pub mod servers;
