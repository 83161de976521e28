//! The test kit, and tools run by it.

mod clock;
mod failures;
mod golden;
mod outcomes;
mod random;
mod tree;
