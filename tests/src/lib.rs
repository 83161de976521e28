//! What the test binaries and benchmarks share.

pub mod dice;
pub mod faults;
pub mod servers;
