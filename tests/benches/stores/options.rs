//! What the command line says.

use lexopt::prelude::*;

use super::measure::Effort;
use super::work::Bench;
use super::{nats, postgres, redis, sqlite};

const USAGE: &str = "\
usage: cargo bench -p mcp-tasks-tests --bench stores -- [--quick] [--only OPERATION] [STORE]...

Without a STORE all of them: sqlite, sqlite-normal, postgres, redis, nats.
  --quick            a smoke run: a few operations of each kind; its numbers mean nothing
  --only OPERATION   operations whose name begins like this";

/// What compares a store with its driver.
type Compare = fn(&Options) -> Bench<()>;

/// The stores, by what they are called on the command line.
pub(crate) const STORES: [(&str, Compare); 5] = [
    ("sqlite", sqlite::full),
    ("sqlite-normal", sqlite::normal),
    ("postgres", postgres::compare),
    ("redis", redis::compare),
    ("nats", nats::compare),
];

/// What the command line says.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) effort: Effort,
    /// How the operations to run begin.
    pub(crate) only: String,
    stores: Vec<String>,
}

impl Options {
    pub(crate) fn read() -> Bench<Self> {
        let mut options = Self {
            effort: Effort::FULL,
            only: String::new(),
            stores: Vec::new(),
        };
        let mut arguments = lexopt::Parser::from_env();
        while let Some(argument) = arguments.next()? {
            match argument {
                // Cargo adds it.
                Long("bench") => {}
                Long("quick") => options.effort = Effort::QUICK,
                Long("only") => options.only = arguments.value()?.string()?,
                Long("help") => {
                    println!("{USAGE}");
                    std::process::exit(0);
                }
                Value(store) => {
                    let store = store.string()?;
                    if !STORES.iter().any(|(name, _)| *name == store) {
                        return Err(format!("there is no store {store}\n{USAGE}").into());
                    }
                    options.stores.push(store);
                }
                other => return Err(format!("{}\n{USAGE}", other.unexpected()).into()),
            }
        }
        Ok(options)
    }

    pub(crate) fn wants(&self, store: &str) -> bool {
        self.stores.is_empty() || self.stores.iter().any(|name| name == store)
    }
}
