//! Servers for the client, and a user who answers.

mod user;

pub(crate) use mcp_tasks_tests::patience::{until, within};

pub(crate) use self::user::User;
pub(crate) use crate::harness::{Asked, Fixture, Reply, Script, Served, command, created, done, task, working};
