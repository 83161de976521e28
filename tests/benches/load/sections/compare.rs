//! Several servers under the same load, in turn.

use anyhow::ensure;

use crate::drive::{Load, Sample, drive};
use crate::operation::Operation;
use crate::options::Role;
use crate::process;
use crate::server::Server;
use crate::table::{NOT_MEASURED, Rounds, Table, micros, ratio, whole};

use super::Setting;

/// How many clients there are.
pub(super) const CONNECTIONS: [usize; 3] = [1, 8, 64];

/// One server, and what is asked of it.
#[derive(Debug)]
pub(super) struct Contestant {
    pub(super) name: String,
    pub(super) at: At,
    pub(super) operation: Operation,
    /// After how many operations a slot ends early.
    pub(super) most: u64,
}

/// Which server that is.
#[derive(Debug)]
pub(super) enum At {
    /// One that goes on from round to round.
    Running(Box<Server>),
    /// A new one for each round, for operations that leave something behind which slows the next ones down.
    New(Role),
}

/// More than any server here does in a slot.
pub(super) const NO_LIMIT: u64 = 1_000_000;

impl Contestant {
    pub(super) fn running(name: impl Into<String>, server: Server, operation: Operation) -> Self {
        Self {
            name: name.into(),
            at: At::Running(Box::new(server)),
            operation,
            most: NO_LIMIT,
        }
    }

    pub(super) fn role(&self) -> Role {
        match &self.at {
            At::Running(server) => server.role,
            At::New(role) => *role,
        }
    }

    fn go(&self, load: &Load) -> anyhow::Result<Sample> {
        let load = Load {
            most: self.most,
            ..*load
        };
        match &self.at {
            At::Running(server) => drive(server, &self.operation, &load),
            At::New(role) => {
                let load = Load { warm_up: 1, ..load };
                drive(&Server::empty(*role)?, &self.operation, &load)
            }
        }
    }
}

/// How many operations each client does before it counts: connections, caches and branch predictors are warm by then.
const WARM_UP: u32 = 20;

/// Rounds of all of them, in turn.
pub(super) fn compare(
    setting: &Setting,
    contestants: &[Contestant],
    connections: usize,
) -> anyhow::Result<Vec<Rounds>> {
    let load = Load {
        connections,
        slot: setting.effort.slot,
        most: NO_LIMIT,
        warm_up: setting.effort.pick(WARM_UP, 1),
    };
    let mut all: Vec<_> = contestants.iter().map(|_| Rounds::default()).collect();
    for _ in 0..setting.effort.rounds {
        for (contestant, rounds) in contestants.iter().zip(&mut all) {
            rounds.0.push(contestant.go(&load)?);
        }
    }
    for contestant in contestants {
        if let At::Running(server) = &contestant.at
            && let Some(whole) = process::counts_all_threads(server.pid())
        {
            ensure!(whole, "the CPU time of a process leaves out some of its threads");
        }
    }
    Ok(all)
}

/// A table of servers beside the limit.
pub(super) fn table(setting: &Setting, contestants: &[Contestant], connections: &[usize]) -> anyhow::Result<()> {
    let mut table = Table::new([
        "server",
        "connections",
        "per second",
        "of the limit",
        "CPU s per 10,000 requests",
        "times the limit's",
        "requests each",
        "p50 µs",
        "p99 µs",
        "p50 to the limit's",
    ]);
    for &connections in connections {
        let all = compare(setting, contestants, connections)?;
        let limit = contestants
            .iter()
            .zip(&all)
            .find_map(|(contestant, rounds)| (contestant.role() == Role::Limit).then_some(rounds));
        for (contestant, rounds) in contestants.iter().zip(&all) {
            let cpu = rounds.cpu();
            let limit_cpu = limit.and_then(Rounds::cpu);
            let p50 = rounds.latency(0.5);
            table.row([
                contestant.name.clone(),
                connections.to_string(),
                whole(rounds.rate()),
                ratio(limit.map_or(f64::NAN, |limit| rounds.rate_to(limit))),
                cpu.map_or_else(|| NOT_MEASURED.to_owned(), |cpu| format!("{cpu:.3}")),
                ratio(cpu.zip(limit_cpu).map_or(f64::NAN, |(cpu, limit)| cpu / limit)),
                ratio(rounds.requests()),
                micros(p50),
                micros(rounds.latency(0.99)),
                ratio(limit.map_or(f64::NAN, |limit| p50.as_secs_f64() / limit.latency(0.5).as_secs_f64())),
            ]);
        }
    }
    table.print();
    Ok(())
}
