//! What all of these tests start: our server in a process of its own, and servers that a test scripts.

mod fixture;
mod script;

pub(crate) use fixture::{FRONT, Fixture, command};
pub(crate) use script::{Asked, Reply, Script, Served, created, done, task, working};
