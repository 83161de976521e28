//! `mcp-tasks resume` and `watch`: from a task to its end.

use std::time::Duration;

use super::session::{Book, Context, Session};
use crate::args::{self, Format, Target};
use crate::content;
use crate::interrupt::Interrupt;
use crate::outcome::{Outcome, Report, Stop};
use crate::prompt::{Onlooker, Prompt};
use mcp_tasks::client::{ClientError, SavedTask, TaskClient, TaskEvent, TaskHandle, TaskState, ToolResult};
use serde_json::json;

/// How long a second Ctrl-C is waited for: time enough to read what it would do.
const SECOND_THOUGHT: Duration = Duration::from_secs(3);

/// How long a task that was called off is waited for. Most end at once; some do not end at all.
const LAST_WAIT: Duration = Duration::from_secs(10);

pub(super) async fn resume(context: &mut Context, target: &Target, answers: &args::Answers) -> Result<Report, Stop> {
    let (server, task) = context.target(target)?;
    let answers = Context::answers(answers)?;
    let prompt = Prompt::new(&context.screen, answers, context.interrupts.sender());
    let go_on = async |context: &mut Context, session: &Session| {
        let handle = session.resume(task)?;
        session.book.keep(handle.saved());
        context.screen.progress(None, "looking at the task");
        to_the_end(context, session, handle, true).await
    };
    context.with_session(server, prompt, go_on).await
}

pub(super) async fn watch(context: &mut Context, target: &Target) -> Result<Report, Stop> {
    let (server, task) = context.target(target)?;
    let look_on = async |context: &mut Context, session: &Session| {
        let session = Session {
            client: shown(session, context),
            book: session.book.clone(),
        };
        let handle = session.resume(task)?;
        to_the_end(context, &session, handle, false).await
    };
    let report = context.with_session(server, Onlooker, look_on).await;
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

/// Waits for a task. `mine` says that Ctrl-C may call it off.
pub(super) async fn to_the_end(
    context: &mut Context,
    session: &Session,
    mut handle: TaskHandle,
    mine: bool,
) -> Result<Report, Stop> {
    let outcome = tokio::select! {
        outcome = handle.wait() => Ok(outcome),
        interrupt = context.interrupts.next() => Err(interrupt),
    };
    match outcome {
        Ok(outcome) => ended(outcome, &session.book, handle.saved()),
        Err(interrupt) => {
            context.screen.clear();
            detach(context, session, handle, interrupt == Interrupt::Key && mine).await
        }
    }
}

/// After Ctrl-C: the task goes on, unless there is another.
async fn detach(context: &mut Context, session: &Session, mut handle: TaskHandle, asks: bool) -> Result<Report, Stop> {
    let book = &session.book;
    let resume = book.resume_command(handle.saved());
    let detached = |handle: &TaskHandle, message: &str| {
        let mut report = Report::new(Outcome::Detached).note(message).task(handle.saved());
        if book.server.is_child() {
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
    let again = tokio::time::timeout(SECOND_THOUGHT, context.interrupts.next()).await;
    if !matches!(again, Ok(Interrupt::Key)) {
        return Ok(detached(&handle, "detached: the task goes on"));
    }
    let id = handle.id();
    let ending = async {
        if let Err(error) = session.client.cancel(&id).await {
            return Err(stopped(error, book, Some(handle.saved())));
        }
        match tokio::time::timeout(LAST_WAIT, handle.wait()).await {
            Ok(outcome) => ended(outcome, book, handle.saved()),
            Err(_) => Ok(detached(
                &handle,
                "the server was asked to cancel the task, and it has not ended yet",
            )),
        }
    };
    tokio::select! {
        report = ending => report,
        _ = context.interrupts.next() => Err(Stop::new(
            Outcome::Detached,
            "the server was asked to cancel the task; nobody waits for its end",
        )),
    }
}

/// What came of waiting.
fn ended(outcome: Result<ToolResult, ClientError>, book: &Book, task: &SavedTask) -> Result<Report, Stop> {
    match outcome {
        Ok(result) => {
            book.forget(task);
            Ok(report(&result).task(task))
        }
        Err(error) => Err(stopped(error, book, Some(task))),
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
pub(super) fn stopped(error: ClientError, book: &Book, task: Option<&SavedTask>) -> Stop {
    let questions = match &error {
        ClientError::InputNeeded(needed) => needed.requests.iter().map(content::question).collect(),
        _ => Vec::new(),
    };
    let mut stop = Stop::from(error);
    for question in questions {
        stop = stop.with(|report| report.note(question));
    }
    let Some(task) = task else { return stop };
    match stop.outcome() {
        Outcome::Failed | Outcome::Cancelled | Outcome::Expired => book.forget(task),
        Outcome::InputNeeded | Outcome::Transport | Outcome::Protocol | Outcome::Refused => {
            book.keep(task);
            let resume = book.resume_command(task);
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
