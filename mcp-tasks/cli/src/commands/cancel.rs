//! `mcp-tasks cancel`.

use super::follow::{command_error, report};
use super::session::{Context, Session};
use crate::args::Target;
use crate::outcome::{CommandError, Outcome, Report};
use crate::prompt::Unattended;
use mcp_tasks::client::{SavedTask, TaskState};

pub(super) async fn cancel(context: &mut Context, target: &Target) -> Result<Report, CommandError> {
    let (server, task) = context.target(target)?;
    let cancel = async |context: &mut Context, session: &Session| in_session(context, session, task).await;
    context.with_session(server, Unattended, cancel).await
}

async fn in_session(context: &mut Context, session: &Session, task: SavedTask) -> Result<Report, CommandError> {
    let mut handle = session.resume(task)?;
    let cancelled = context.interrupts.or(handle.cancel()).await?;
    let shown = match cancelled {
        Ok(()) => context.interrupts.or(handle.get()).await?,
        Err(error) => Err(error),
    };
    match shown {
        Ok(task) => {
            if task.state.is_terminal() {
                session.tracker.remove(handle.saved());
            }
            let (base, text) = match &task.state {
                // It was over before.
                TaskState::Completed { result, .. } => (report(result), "the task had ended before".to_owned()),
                TaskState::Cancelled => (Report::new(Outcome::Success).text("cancelled"), String::new()),
                state if state.is_terminal() => (Report::new(Outcome::Success), "the task had ended before".to_owned()),
                state => {
                    let words = format!(
                        "the server was asked to cancel the task; it is {} still",
                        state.status()
                    );
                    (Report::new(Outcome::Success), words)
                }
            };
            let base = if text.is_empty() { base } else { base.note(text) };
            Ok(base.task(handle.saved()).member("status", task.state.status()))
        }
        Err(error) => Err(command_error(error, &session.tracker, Some(handle.saved()))),
    }
}
