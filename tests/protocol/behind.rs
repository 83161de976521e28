//! The same tests as in `main.rs`, against a server that leaves every request to rmcp (`mcp.tasks.http.front = false`): both
//! ways say the same. What there is in front alone has no test here.

/// Whether the servers of these tests answer in front of rmcp.
pub(crate) const FRONT: bool = false;

mod answers;
mod cancel;
mod decision;
mod declaration;
mod door;
mod errors;
mod guards;
#[expect(dead_code, reason = "listening is for servers that answer in front")]
mod harness;
mod identifiers;
mod legacy;
mod owners;
mod panics;
mod polling;
mod process;
mod progress;
mod quota;
mod sdk_client;
mod shape;
mod startup;
mod subscriptions;
