#![doc = include_str!("../README.md")]
//!
//! ## This library
//!
//! It is the program and no more: [`main`] is here so that another package, such as one with tests, can build the program too.

mod answers;
mod args;
mod arguments;
mod bar;
mod commands;
mod content;
mod form;
mod interrupt;
mod outcome;
mod prompt;
mod schema;
mod screen;
mod server;
mod task_file;
mod text;

use std::process::ExitCode;

use clap::Parser;

use self::args::{Arguments, Format};
use self::outcome::Report;
use self::screen::Screen;

/// Runs the program on the arguments of the process, and returns its exit code.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let screen = Screen::new(arguments.global.output, arguments.global.quiet);
    ExitCode::from(run(arguments, &screen))
}

fn run(arguments: Arguments, screen: &Screen) -> u8 {
    let format = arguments.global.output;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let ended = match runtime {
        Ok(runtime) => {
            let ended = runtime.block_on(commands::run(arguments, screen));
            // Nothing is waited for that still blocks a thread.
            runtime.shutdown_background();
            ended
        }
        Err(error) => Err(outcome::CommandError::local(format!(
            "the program cannot start: {error}"
        ))),
    };
    screen.clear();
    // A question may still be open on another thread, with the terminal in its hands.
    prompt::restore_terminal();
    let report = ended.unwrap_or_else(Report::from);
    let code = report.outcome.code();
    let written = match format {
        Format::Text => report.print(screen),
        Format::Json => report.write(screen),
    };
    match written {
        Ok(()) => code,
        // The reader has read enough, as with `| head`.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => code,
        Err(error) => {
            screen.note(&format!("the output cannot be written: {error}"));
            outcome::Outcome::Local.code()
        }
    }
}
