//! `mcp-tasks get` and `cancel`.

use serde_json::Value;

use super::follow::{report, stopped};
use super::session::{Context, Session};
use crate::args::Target;
use crate::content;
use crate::outcome::{Outcome, Report, Stop, requests};
use crate::prompt::Onlooker;
use mcp_tasks::client::{DetailedTask, SavedTask, TaskState};

pub(super) async fn get(context: &mut Context, target: &Target) -> Result<Report, Stop> {
    let (server, task) = context.target(target)?;
    let look = async |context: &mut Context, session: &Session| {
        let mut handle = session.resume(task)?;
        let looked = context.interrupts.or(handle.get()).await?;
        let looked = looked.map_err(|error| stopped(error, &session.book, Some(handle.saved())))?;
        // It is kept even if it has ended: a look takes nothing away, and its result may be wanted again.
        Ok((looked, SavedTask::from(handle)))
    };
    let (looked, saved) = context.with_session(server, Onlooker, look).await?;
    let mut report = Report::new(Outcome::Success)
        .text(described(&looked, &saved))
        .task(&saved)
        .member("status", looked.state.status())
        .member("task", Value::Object(looked.raw().clone()));
    if let TaskState::InputRequired { requests: asked, .. } = &looked.state {
        report = report.member("requests", requests(asked));
    }
    Ok(report)
}

/// A task in a few lines.
fn described(task: &DetailedTask, saved: &SavedTask) -> String {
    let mut lines = vec![format!("task     {}", task.id)];
    if let Some(tool) = saved.tool() {
        lines.push(format!("tool     {tool}"));
    }
    lines.push(format!("status   {}", task.state.status()));
    if let Some(message) = &task.status_message {
        lines.push(format!("message  {message}"));
    }
    if let Some(created) = task.created_at {
        lines.push(format!("created  {created}"));
        if let Some(ttl) = task.ttl {
            lines.push(format!("kept to  {}", created.saturating_add(ttl)));
        }
    }
    match &task.state {
        TaskState::InputRequired { requests, .. } => lines.extend(requests.iter().map(content::question)),
        TaskState::Completed { result, .. } => {
            let head = if result.is_error() {
                "the tool says that it failed:"
            } else {
                "result:"
            };
            lines.push(head.to_owned());
            lines.push(content::result(result));
        }
        TaskState::Failed { error, .. } => lines.push(format!("error    {} ({})", error.message, error.code.0)),
        TaskState::Working | TaskState::Cancelled => {}
    }
    lines.join("\n")
}

pub(super) async fn cancel(context: &mut Context, target: &Target) -> Result<Report, Stop> {
    let (server, task) = context.target(target)?;
    let call_off = async |context: &mut Context, session: &Session| in_session(context, session, task).await;
    context.with_session(server, Onlooker, call_off).await
}

async fn in_session(context: &mut Context, session: &Session, task: SavedTask) -> Result<Report, Stop> {
    let mut handle = session.resume(task)?;
    let cancelled = context.interrupts.or(handle.cancel()).await?;
    let looked = match cancelled {
        Ok(()) => context.interrupts.or(handle.get()).await?,
        Err(error) => Err(error),
    };
    match looked {
        Ok(task) => {
            if task.state.is_terminal() {
                session.book.forget(handle.saved());
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
        Err(error) => Err(stopped(error, &session.book, Some(handle.saved()))),
    }
}
