//! The replay ledger.

mod fingerprint;

pub use fingerprint::*;
