//! The protocol end to end: a server in a process of its own, and clients that look at what it sends.
//!
//! Every test starts its servers itself, and nothing is shared between tests. Each is named for the rule it checks and
//! says where the rule stands: "Tasks" is the extension's specification, "2026-07-28" and "2025-11-25" are the core's.

/// Whether the servers of these tests answer in front of rmcp.
pub(crate) const FRONT: bool = true;

mod answers;
mod cancel;
mod decision;
mod declaration;
mod door;
mod errors;
mod guards;
mod harness;
mod identifiers;
mod legacy;
mod listen;
mod owners;
mod panics;
mod polling;
mod process;
mod progress;
mod quota;
mod sdk_client;
mod sessions;
mod shape;
mod startup;
mod stdio;
mod subscriptions;
mod two_ways;
