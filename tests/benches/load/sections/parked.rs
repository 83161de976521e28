//! What a task costs that waits for its answer: memory, and neither a thread nor CPU.

use std::time::Duration;

use crate::drive::{Load, drive};
use crate::operation::Operation;
use crate::options::{Preload, Role};
use crate::server::Server;
use crate::table::{NOT_MEASURED, Table, whole};

use super::{Setting, idle};

/// How many clients park tasks, with a connection each, before and after as well.
const CONNECTIONS: usize = 16;

/// Long enough for timers that run every second or few.
const IDLE: Duration = Duration::from_secs(5);

pub(super) fn run(setting: &Setting) -> anyhow::Result<()> {
    println!("## A task parked at a question\n");
    let mut table = Table::new([
        "server",
        "tasks",
        "resident bytes each",
        "threads before",
        "threads with them",
        "idle CPU ms per s, before",
        "with them",
    ]);
    // rmcp's are fewer, as each takes longer than the one before.
    let tasks = setting.effort.pick(
        [(Role::Ours, 100_000), (Role::Rmcp, 5000)],
        [(Role::Ours, 500), (Role::Rmcp, 500)],
    );
    let idle_for = setting.effort.pick(IDLE, Duration::from_millis(100));
    for (role, count) in tasks {
        let server = Server::start(role, &Preload::default(), &setting.answers)?;
        let park = |most: u64| {
            let load = Load {
                connections: CONNECTIONS,
                slot: Duration::from_secs(120),
                most,
                warm_up: 0,
            };
            drive(&server, &Operation::Park, &load)
        };
        // What a server allocates once, for its first tasks and connections, is no task's.
        park(setting.effort.pick(2000, 50))?;
        let quiet = server.usage();
        idle(idle_for);
        let before = server.usage();
        let parked = park(count)?.operations;
        idle(Duration::from_millis(200));
        let after = server.usage();
        idle(idle_for);
        let end = server.usage();
        let (Some(quiet), Some(before), Some(after), Some(end)) = (quiet, before, after, end) else {
            let nothing = || NOT_MEASURED.to_owned();
            let cells = [nothing(), nothing(), nothing(), nothing(), nothing()];
            let [a, b, c, d, e] = cells;
            table.row([role.as_str().to_owned(), whole(parked as f64), a, b, c, d, e]);
            continue;
        };
        let cpu = |from: Duration, to: Duration| {
            let share = to.saturating_sub(from).as_secs_f64() / idle_for.as_secs_f64();
            format!("{:.1}", share * 1e3)
        };
        table.row([
            role.as_str().to_owned(),
            whole(parked as f64),
            whole(after.resident.saturating_sub(before.resident) as f64 / parked as f64),
            before.threads.to_string(),
            end.threads.to_string(),
            cpu(quiet.cpu, before.cpu),
            cpu(after.cpu, end.cpu),
        ]);
    }
    table.print();
    Ok(())
}
