//! A server process, the ways to speak to it, and how to wait for what it does.

mod listen;
mod request;
mod task;
mod wire;

pub(crate) use mcp_tasks_tests::patience::{until, within};
pub(crate) use request::{Reply, Request, TASKS, V2026, declared, undeclared, words};
pub(crate) use wire::Wire;

pub(crate) use crate::harness::{Fixture, command};
