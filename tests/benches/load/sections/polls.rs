//! `tasks/get`, which is most of what a task server is asked, and a synchronous call: one request each, nothing left
//! behind.

use crate::drive::runtime;
use crate::operation::{Operation, Tasks};
use crate::options::{Preload, Role};
use crate::server::Server;

use super::Setting;
use super::compare::{CONNECTIONS, Contestant, table};

type Of = fn(&Server, &Tasks) -> Operation;

const POLLS: [(&str, Of); 3] = [
    ("`tasks/get` of a working task", |server, tasks| {
        Operation::poll_working(server, &tasks.working)
    }),
    ("`tasks/get` of a completed task", |server, tasks| {
        Operation::poll_completed(server, &tasks.completed)
    }),
    (
        "A synchronous call, of a client that does not declare the extension",
        |server, _| Operation::synchronous(server),
    ),
];

pub(super) fn run(setting: &Setting) -> anyhow::Result<()> {
    for (title, operation) in POLLS {
        println!("## {title}\n");
        let mut contestants = Vec::new();
        let mut tasks = None;
        for role in Role::ALL {
            let server = Server::start(role, &Preload::default(), &setting.answers)?;
            // The limit knows no tasks; any id of the same length will do.
            let of = match (role, &tasks) {
                (Role::Limit, Some(tasks)) => Tasks::clone(tasks),
                _ => runtime()?.block_on(Tasks::create(&server))?,
            };
            let operation = operation(&server, &of);
            contestants.push(Contestant::running(role.as_str(), server, operation));
            tasks = Some(of);
        }
        table(setting, &contestants, &CONNECTIONS)?;
    }
    Ok(())
}
