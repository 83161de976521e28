//! What is measured.

mod calls;
mod compare;
mod creation;
mod expiry;
mod listeners;
mod parked;
mod polls;
mod profile;
mod stored;

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::drive::runtime;
use crate::operation::answers;
use crate::options::{Effort, Options, Role};
use crate::process;
use crate::server::{Answers, Server};

/// What every section goes by.
#[derive(Debug)]
pub(crate) struct Setting {
    effort: Effort,
    /// What the limit answers.
    answers: Answers,
    /// How many files may be open, here and in a server.
    open_files: usize,
}

type Section = fn(&Setting) -> anyhow::Result<()>;

/// By name, in the order in which they run.
const SECTIONS: [(&str, Section); 7] = [
    ("polls", polls::run),
    ("calls", calls::run),
    ("stored", stored::run),
    ("parked", parked::run),
    ("creation", creation::run),
    ("expiry", expiry::run),
    ("listeners", listeners::run),
];

/// These run only where they are named.
const PROFILES: [(&str, Section); 2] = [("profile", profile::ours), ("profile-limit", profile::limit)];

pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    for name in &options.sections {
        let known = SECTIONS.iter().chain(&PROFILES).any(|(section, _)| section == name);
        ensure!(known, "there is no section {name}; see --help");
    }
    let open_files = process::raise_open_files();
    let runtime = runtime()?;
    let server = Server::empty(Role::Ours)?;
    let answers = runtime.block_on(answers(&server)).context("the answers to measure")?;
    if process::usage(server.pid()).is_none() {
        println!("This system has no /proc: CPU and memory of the servers are not measured.\n");
    }
    drop(server);
    let setting = Setting {
        effort: options.effort,
        answers,
        open_files,
    };
    if setting.effort.quick {
        println!("A smoke run: these numbers mean nothing.\n");
    }
    println!("The limit answers what `ours` answered, in bytes:\n");
    for (name, body) in &setting.answers {
        println!("* `{name}`: {}", body.len());
    }
    println!();
    let start = Instant::now();
    let all = options.sections.is_empty();
    let of_all = SECTIONS.into_iter().map(|section| (section, all));
    for ((name, section), is_due) in of_all.chain(PROFILES.map(|section| (section, false))) {
        if is_due || options.sections.iter().any(|wanted| wanted == name) {
            eprintln!("{:>4} s: {name}", start.elapsed().as_secs());
            section(&setting).with_context(|| format!("section {name}"))?;
        }
    }
    eprintln!("{:>4} s: done, every answer was right", start.elapsed().as_secs());
    Ok(())
}

/// Lets some time go by in which nothing is asked of a server.
fn idle(duration: Duration) {
    std::thread::sleep(duration);
}
