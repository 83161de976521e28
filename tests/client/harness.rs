//! Servers for the client, and a user who answers.

#[allow(dead_code, reason = "what the protocol's tests need besides")]
#[path = "../protocol/harness/process.rs"]
mod process;
mod script;
mod user;

pub(crate) use mcp_tasks_tests::patience::{until, within};

pub(crate) use self::process::{Fixture, command};
pub(crate) use self::script::{Asked, Reply, Script, Served, created, done, task, working};
pub(crate) use self::user::User;
