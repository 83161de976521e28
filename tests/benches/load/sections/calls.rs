//! The life of a task: from the call to its result, without and with a question. The limit answers as many requests.

use crate::operation::Operation;
use crate::options::{Preload, Role};
use crate::server::Server;

use super::Setting;
use super::compare::{At, CONNECTIONS, Contestant, NO_LIMIT, table};

/// rmcp's task manager looks at every task in every operation. It is measured with an empty store, so each of its slots
/// has a new server and ends after so many tasks, at which that look is a small part of the work yet. `stored` shows what
/// it comes to.
const FEW: u64 = 1000;

pub(super) fn run(setting: &Setting) -> anyhow::Result<()> {
    for (title, operation) in [
        ("A call and its result: two requests", Operation::Call),
        ("A question and its answer: four requests", Operation::Question),
    ] {
        println!("## {title}\n");
        let mut contestants = Vec::new();
        for role in Role::ALL {
            let (at, most) = match role {
                Role::Rmcp => (At::New(role), FEW),
                Role::Ours | Role::Limit => {
                    let server = Server::start(role, &Preload::default(), &setting.answers)?;
                    (At::Running(Box::new(server)), NO_LIMIT)
                }
            };
            contestants.push(Contestant {
                name: role.as_str().to_owned(),
                at,
                operation: operation.clone(),
                most,
            });
        }
        table(setting, &contestants, &CONNECTIONS)?;
    }
    Ok(())
}
