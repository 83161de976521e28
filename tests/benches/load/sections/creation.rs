//! A million tasks, one after the other: the last hundred thousand may not take longer than the first.

use std::time::{Duration, Instant};

use crate::drive::{Load, drive};
use crate::operation::Operation;
use crate::options::{Preload, Role};
use crate::server::Server;
use crate::table::{NOT_MEASURED, Rounds, Table, seconds, whole};

use super::Setting;

/// What is created at a time, and how often; rmcp's in smaller lots, since each takes longer than the one before.
const FULL: [(Role, u64, u64); 2] = [(Role::Ours, 100_000, 10), (Role::Rmcp, 5000, 4)];
const QUICK: [(Role, u64, u64); 2] = [(Role::Ours, 500, 4), (Role::Rmcp, 200, 2)];

/// How long a server may take for all of them; then the rest is left out, and the table is shorter.
const PATIENCE: Duration = Duration::from_secs(120);

const CONNECTIONS: usize = 64;

pub(super) fn run(setting: &Setting) -> anyhow::Result<()> {
    println!("## Creating tasks, each of which completes at once and stays\n");
    let mut table = Table::new([
        "server",
        "tasks",
        "seconds",
        "per second",
        "CPU s per 10,000 tasks",
        "resident MB",
    ]);
    for (role, lot, lots) in setting.effort.pick(FULL, QUICK) {
        let server = Server::start(role, &Preload::default(), &setting.answers)?;
        let start = Instant::now();
        for number in 1..=lots {
            let left = PATIENCE.saturating_sub(start.elapsed());
            let load = Load {
                connections: CONNECTIONS,
                slot: left,
                most: lot,
                warm_up: 0,
            };
            let sample = drive(&server, &Operation::Create, &load)?;
            if sample.operations < lot {
                println!("`{}` was stopped after {} s.\n", role.as_str(), PATIENCE.as_secs());
                break;
            }
            let resident = server.usage().map(|usage| usage.resident as f64 / 1e6);
            let rounds = Rounds(vec![sample]);
            let not_measured = || NOT_MEASURED.to_owned();
            table.row([
                role.as_str().to_owned(),
                format!("to {}", whole((number * lot) as f64)),
                seconds(rounds.0[0].took.as_secs_f64()),
                whole(rounds.rate()),
                rounds.cpu().map_or_else(not_measured, |cpu| format!("{cpu:.3}")),
                resident.map_or_else(not_measured, whole),
            ]);
        }
    }
    table.print();
    Ok(())
}
