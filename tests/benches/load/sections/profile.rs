//! One server alone, for a profiler to look into: polls of a working task and nothing else.

use std::time::Duration;

use crate::drive::{Load, drive, runtime};
use crate::operation::{Operation, Tasks};
use crate::options::Role;
use crate::server::Server;

use super::Setting;
use super::compare::NO_LIMIT;

const CONNECTIONS: usize = 8;

/// For a profiler that samples a while, and for one that counts every instruction of some requests.
const FULL: (Duration, u64) = (Duration::from_secs(10), NO_LIMIT);
const QUICK: (Duration, u64) = (Duration::from_secs(120), 10_000);

pub(super) fn ours(setting: &Setting) -> anyhow::Result<()> {
    let server = Server::profiled(Role::Ours, &setting.answers)?;
    let tasks = runtime()?.block_on(Tasks::create(&server))?;
    poll(setting, &server, &tasks.working)
}

pub(super) fn limit(setting: &Setting) -> anyhow::Result<()> {
    let server = Server::profiled(Role::Limit, &setting.answers)?;
    // It knows no tasks; any id of the same length will do.
    poll(setting, &server, &"0".repeat(32))
}

fn poll(setting: &Setting, server: &Server, id: &str) -> anyhow::Result<()> {
    let (slot, most) = setting.effort.pick(FULL, QUICK);
    let load = Load {
        connections: CONNECTIONS,
        slot,
        most,
        warm_up: 0,
    };
    let sample = drive(server, &Operation::poll_working(server, id), &load)?;
    println!("{} polls\n", sample.requests);
    Ok(())
}
