//! `mcp-tasks resume` and `watch`: from a task to its end.

use std::time::Duration;

use super::session::{Context, Session, TaskTracker};
use crate::args::{self, Format, Target};
use crate::content;
use crate::interrupt::Interrupt;
use crate::outcome::{CommandError, Outcome, Report};
use crate::prompt::{Prompt, Unattended};
use mcp_tasks::client::{ClientError, SavedTask, TaskClient, TaskEvent, TaskHandle, TaskState, ToolResult};
use serde_json::json;

/// How long a second Ctrl-C is waited for: time enough to read what it would do.
const SECOND_INTERRUPT_WAIT: Duration = Duration::from_secs(3);

/// How long the end of a task that was cancelled is waited for. Most end at once; some do not end at all.
const CANCEL_WAIT: Duration = Duration::from_secs(10);

pub(super) async fn resume(
    context: &mut Context,
    target: &Target,
    answers: &args::Answers,
) -> Result<Report, CommandError> {
    let (server, task) = context.target(target)?;
    let answers = Context::answers(answers)?;
    let prompt = Prompt::new(&context.screen, answers, context.interrupts.sender());
    let go_on = async |context: &mut Context, session: &Session| {
        let handle = session.resume(task)?;
        session.tracker.save(handle.saved());
        context.screen.progress(None, "looking at the task");
        follow(context, session, handle, true).await
    };
    context.with_session(server, prompt, go_on).await
}

pub(super) async fn watch(context: &mut Context, target: &Target) -> Result<Report, CommandError> {
    let (server, task) = context.target(target)?;
    let look_on = async |context: &mut Context, session: &Session| {
        let session = Session {
            client: shown(session, context),
            tracker: session.tracker.clone(),
        };
        let handle = session.resume(task)?;
        follow(context, &session, handle, false).await
    };
    let report = context.with_session(server, Unattended, look_on).await;
    report
        .map(Report::in_one_line)
        .map_err(|stop| stop.with(Report::in_one_line))
}

/// The session's client, which writes every state of a task to standard output.
fn shown(session: &Session, context: &Context) -> TaskClient {
    let screen = context.screen.clone();
    session.client.observed_by(move |event| {
        let TaskEvent::Status(task) = event else { return };
        // Who reads no more has closed standard output, and sees the end by it.
        let _ = match screen.format {
            Format::Json => screen.json_line(&json!({"event": "status", "task": task.raw()})),
            Format::Text => {
                let mut words = task.state.status().to_owned();
                if let Some(message) = &task.status_message {
                    words.push_str(": ");
                    words.push_str(message);
                }
                if let TaskState::InputRequired { requests, .. } = &task.state {
                    for request in requests {
                        words.push('\n');
                        words.push_str(&content::question(request));
                    }
                }
                screen.out(&words)
            }
        };
    })
}

/// Waits for a task. `may_cancel` says that Ctrl-C may cancel it.
pub(super) async fn follow(
    context: &mut Context,
    session: &Session,
    mut handle: TaskHandle,
    may_cancel: bool,
) -> Result<Report, CommandError> {
    let outcome = tokio::select! {
        outcome = handle.wait() => Ok(outcome),
        interrupt = context.interrupts.next() => Err(interrupt),
    };
    match outcome {
        Ok(outcome) => ended(outcome, &session.tracker, handle.saved()),
        Err(interrupt) => {
            context.screen.clear();
            detach(context, session, handle, interrupt == Interrupt::Key && may_cancel).await
        }
    }
}

/// After Ctrl-C: the task goes on, unless there is another.
async fn detach(
    context: &mut Context,
    session: &Session,
    mut handle: TaskHandle,
    asks: bool,
) -> Result<Report, CommandError> {
    let tracker = &session.tracker;
    let resume = tracker.resume_command(handle.saved());
    let detached = |handle: &TaskHandle, message: &str| {
        let mut report = Report::new(Outcome::Detached).note(message).task(handle.saved());
        if tracker.server.is_child() {
            report = report.note("Its server ends with this command; what it does not store is lost.");
        }
        report
            .note(format!("To go on with it: {resume}"))
            .member("resume", resume.clone())
    };
    if !asks {
        return Ok(detached(&handle, "detached: the task goes on"));
    }
    context
        .screen
        .note("Ctrl-C again cancels the task; otherwise it goes on.");
    let again = tokio::time::timeout(SECOND_INTERRUPT_WAIT, context.interrupts.next()).await;
    if !matches!(again, Ok(Interrupt::Key)) {
        return Ok(detached(&handle, "detached: the task goes on"));
    }
    let id = handle.id();
    let ending = async {
        if let Err(error) = session.client.cancel(&id).await {
            return Err(command_error(error, tracker, Some(handle.saved())));
        }
        match tokio::time::timeout(CANCEL_WAIT, handle.wait()).await {
            Ok(outcome) => ended(outcome, tracker, handle.saved()),
            Err(_) => Ok(detached(
                &handle,
                "the server was asked to cancel the task, and it has not ended yet",
            )),
        }
    };
    tokio::select! {
        report = ending => report,
        _ = context.interrupts.next() => Err(CommandError::new(
            Outcome::Detached,
            "the server was asked to cancel the task; its end is not waited for",
        )),
    }
}

/// What came of waiting.
fn ended(
    outcome: Result<ToolResult, ClientError>,
    tracker: &TaskTracker,
    task: &SavedTask,
) -> Result<Report, CommandError> {
    match outcome {
        Ok(result) => {
            tracker.remove(task);
            Ok(report(&result).task(task))
        }
        Err(error) => Err(command_error(error, tracker, Some(task))),
    }
}

/// A result, as a report.
pub(super) fn report(result: &ToolResult) -> Report {
    let outcome = match result.is_error() {
        true => Outcome::ToolError,
        false => Outcome::Success,
    };
    let report = Report::new(outcome)
        .text(content::result(result))
        .member("result", result.raw().clone());
    match result.is_error() {
        true => report.note("the tool says that it failed"),
        false => report,
    }
}

/// An error, as a report: what is to be done, and whether the task is kept.
pub(super) fn command_error(error: ClientError, tracker: &TaskTracker, task: Option<&SavedTask>) -> CommandError {
    let questions = match &error {
        ClientError::InputNeeded(needed) => needed.requests.iter().map(content::question).collect(),
        _ => Vec::new(),
    };
    let mut stop = CommandError::from(error);
    for question in questions {
        stop = stop.with(|report| report.note(question));
    }
    let Some(task) = task else { return stop };
    match stop.outcome() {
        Outcome::Failed | Outcome::Cancelled | Outcome::Expired => tracker.remove(task),
        Outcome::InputNeeded | Outcome::Transport | Outcome::Protocol | Outcome::Refused => {
            tracker.save(task);
            let resume = tracker.resume_command(task);
            stop = stop.with(|report| {
                report
                    .note(format!("The task goes on. To go on with it: {resume}"))
                    .member("resume", resume)
            });
        }
        // A task belongs to who started it, so a missing token makes it unknown.
        Outcome::Unknown => {
            stop = stop.with(|report| {
                report.note(
                    "If the server and the token are right, it is gone; `mcp-tasks forget` removes it from those kept.",
                )
            });
        }
        _ => {}
    }
    stop.with(|report| report.task(task))
}
