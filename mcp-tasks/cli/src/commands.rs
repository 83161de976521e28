//! What the program does.

mod answer;
mod call;
mod cancel;
mod follow;
mod get;
mod list;

mod session;
mod tools;

use self::session::Context;
use crate::args::{Arguments, Command};
use crate::interrupt::Interrupts;
use crate::outcome::{CommandError, Report};
use crate::screen::Screen;
use crate::task_file::TaskFile;

/// Runs a command to its end.
pub(crate) async fn run(arguments: Arguments, screen: &Screen) -> Result<Report, CommandError> {
    let mut context = Context {
        screen: screen.clone(),
        task_file: TaskFile::at(arguments.global.state),
        interrupts: Interrupts::new(),
        envs: arguments.global.envs,
    };
    match arguments.command {
        Command::Tools { server } => tools::run(&mut context, &server).await,
        Command::Call(call) => call::run(&mut context, call).await,
        Command::Resume { target, answers } => follow::resume(&mut context, &target, &answers).await,
        Command::Watch { target } => follow::watch(&mut context, &target).await,
        Command::Get { target } => get::get(&mut context, &target).await,
        Command::Answer(answer) => answer::run(&mut context, &answer).await,
        Command::Cancel { target } => cancel::cancel(&mut context, &target).await,
        Command::List => list::list(&context),
        Command::Forget { tasks, past_due } => list::forget(&context, &tasks, past_due),
    }
}
