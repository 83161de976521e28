//! The same with more and more tasks stored: none of it may depend on their number.

use std::time::Instant;

use crate::drive::runtime;
use crate::operation::{Operation, Tasks};
use crate::options::{Preload, Role};
use crate::server::{Server, parked_id};
use crate::table::whole;

use super::Setting;
use super::compare::{Contestant, table};

/// Enough clients to keep a small machine busy.
const CONNECTIONS: [usize; 1] = [8];

/// How many of the stored tasks are asked for in turn where it is not one: more than caches hold of a large store, and few
/// enough to prepare.
const SPREAD: u64 = 16_384;

/// rmcp's are few: to fill it takes time with the square of their number.
const OURS: [u64; 4] = [0, 10_000, 100_000, 1_000_000];
const RMCP: [u64; 3] = [0, 10_000, 20_000];
const QUICK: [u64; 2] = [0, 1000];

pub(super) fn run(setting: &Setting) -> anyhow::Result<()> {
    let sizes: [(Role, &[u64]); 2] = [
        (Role::Ours, setting.effort.pick(&OURS, &QUICK)),
        (Role::Rmcp, setting.effort.pick(&RMCP, &QUICK)),
    ];
    let tasks = |server: &Server| runtime()?.block_on(Tasks::create(server));

    println!("## `tasks/get` of one working task beside so many parked ones\n");
    let mut polls = Vec::new();
    let mut spread = Vec::new();
    for (role, sizes) in sizes {
        for &parked in sizes {
            let server = filled(setting, role, parked)?;
            let one = Operation::poll_working(&server, &tasks(&server)?.working);
            if role == Role::Ours && parked > 0 {
                let ids: Vec<_> = (0..SPREAD).map(|n| parked_id(n * parked / SPREAD)).collect();
                let operation = Operation::poll_parked(&server, ids.iter().map(mcp_tasks::TaskId::as_str));
                let name = format!("{}, {} stored", role.as_str(), whole(parked as f64));
                spread.push((name, operation));
            }
            polls.push(contestant(role, parked, server, one));
        }
    }
    polls.insert(
        0,
        limit(setting, |server| {
            Ok(Operation::poll_working(server, &tasks(server)?.working))
        })?,
    );
    table(setting, &polls, &CONNECTIONS)?;

    println!(
        "## `tasks/get` of {} of the parked tasks in turn\n",
        whole(SPREAD as f64)
    );
    let (mut ours, theirs): (Vec<_>, Vec<_>) = polls
        .into_iter()
        .filter(|contestant| contestant.role() != Role::Limit)
        .partition(|contestant| contestant.role() == Role::Ours);
    for contestant in &mut ours {
        // The one without parked tasks goes on with its one task, for comparison.
        if let Some(place) = spread.iter().position(|(name, _)| *name == contestant.name) {
            contestant.operation = spread.swap_remove(place).1;
        }
    }
    let any = "0".repeat(32);
    ours.insert(
        0,
        limit(setting, |server| Ok(Operation::poll_parked(server, [any.as_str()])))?,
    );
    table(setting, &ours, &CONNECTIONS)?;

    println!("## A call and its result beside so many live tasks\n");
    // rmcp's empty server would not stay empty; `calls` has it, with a new one for each round.
    let mut calls: Vec<_> = ours.into_iter().chain(theirs.into_iter().skip(1)).collect();
    for contestant in &mut calls {
        contestant.operation = Operation::Call;
        if contestant.role() == Role::Rmcp {
            // What it creates slows it down too; that few of them do not.
            contestant.most = 200;
        }
    }
    table(setting, &calls, &CONNECTIONS)
}

fn contestant(role: Role, parked: u64, server: Server, operation: Operation) -> Contestant {
    let name = format!("{}, {} stored", role.as_str(), whole(parked as f64));
    Contestant::running(name, server, operation)
}

fn limit(
    setting: &Setting,
    operation: impl FnOnce(&Server) -> anyhow::Result<Operation>,
) -> anyhow::Result<Contestant> {
    let server = Server::start(Role::Limit, &Preload::default(), &setting.answers)?;
    let operation = operation(&server)?;
    Ok(Contestant::running("limit", server, operation))
}

/// A server with so many tasks.
fn filled(setting: &Setting, role: Role, parked: u64) -> anyhow::Result<Server> {
    let start = Instant::now();
    let preload = Preload {
        parked,
        ..Preload::default()
    };
    let server = Server::start(role, &preload, &setting.answers)?;
    if parked > 0 {
        let took = start.elapsed().as_secs_f64();
        eprintln!(
            "        {} with {} tasks after {took:.1} s",
            role.as_str(),
            whole(parked as f64)
        );
    }
    Ok(server)
}
