//! `mcp-tasks get`.

use serde_json::Value;

use super::follow::command_error;
use super::session::{Context, Session};
use crate::args::Target;
use crate::content;
use crate::outcome::{CommandError, Outcome, Report, requests};
use crate::prompt::Unattended;
use mcp_tasks::client::{DetailedTask, SavedTask, TaskState};

pub(super) async fn get(context: &mut Context, target: &Target) -> Result<Report, CommandError> {
    let (server, task) = context.target(target)?;
    let get = async |context: &mut Context, session: &Session| {
        let mut handle = session.resume(task)?;
        let shown = context.interrupts.or(handle.get()).await?;
        let shown = shown.map_err(|error| command_error(error, &session.tracker, Some(handle.saved())))?;
        // It is kept even if it has ended: its result may be wanted again.
        Ok((shown, SavedTask::from(handle)))
    };
    let (shown, saved) = context.with_session(server, Unattended, get).await?;
    let mut report = Report::new(Outcome::Success)
        .text(described(&shown, &saved))
        .task(&saved)
        .member("status", shown.state.status())
        .member("task", Value::Object(shown.raw().clone()));
    if let TaskState::InputRequired { requests: asked, .. } = &shown.state {
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
