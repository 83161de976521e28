//! What the program does.

mod answer;
mod call;
mod follow;
mod list;
mod look;
mod session;
mod tools;

use self::session::Context;
use crate::args::{Arguments, Command};
use crate::interrupt::Interrupts;
use crate::kept::Kept;
use crate::outcome::{Report, Stop};
use crate::screen::Screen;

/// Runs a command to its end.
pub(crate) async fn run(arguments: Arguments, screen: &Screen) -> Result<Report, Stop> {
    let mut context = Context {
        screen: screen.clone(),
        kept: Kept::at(arguments.global.state),
        interrupts: Interrupts::new(),
        envs: arguments.global.envs,
    };
    match arguments.command {
        Command::Tools { server } => tools::run(&mut context, &server).await,
        Command::Call(call) => call::run(&mut context, call).await,
        Command::Resume { target, answers } => follow::resume(&mut context, &target, &answers).await,
        Command::Watch { target } => follow::watch(&mut context, &target).await,
        Command::Get { target } => look::get(&mut context, &target).await,
        Command::Answer(answer) => answer::run(&mut context, &answer).await,
        Command::Cancel { target } => look::cancel(&mut context, &target).await,
        Command::List => list::list(&context),
        Command::Forget { tasks, past_due } => list::forget(&context, &tasks, past_due),
    }
}
