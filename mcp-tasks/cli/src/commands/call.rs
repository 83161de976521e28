//! `mcp-tasks call`

use rmcp::model::Tool;
use serde_json::{Map, Value};

use super::follow;
use super::session::{Context, Session};
use crate::args;
use crate::arguments;
use crate::outcome::{CommandError, Outcome, Report};
use crate::prompt::Prompt;
use crate::server::Server;
use crate::text;
use mcp_tasks::client::ToolCall;

pub(super) async fn run(context: &mut Context, call: args::Call) -> Result<Report, CommandError> {
    let server = Server::parse(&call.server)?;
    let answers = Context::answers(&call.answers)?;
    let given = match &call.json {
        Some(json) => arguments::json(json)?,
        None => Map::new(),
    };
    let prompt = Prompt::new(&context.screen, answers, context.interrupts.sender());
    let make = async |context: &mut Context, session: &Session| in_session(context, session, &call, given).await;
    let report = context.with_session(server, prompt, make).await;
    let named = |report: Report| report.member("tool", call.tool.clone());
    report.map(named).map_err(|stop| stop.with(named))
}

async fn in_session(
    context: &mut Context,
    session: &Session,
    call: &args::Call,
    given: Map<String, Value>,
) -> Result<Report, CommandError> {
    let tools = context.interrupts.or(session.client.tools()).await??;
    let tool = tools
        .iter()
        .find(|tool| tool.name == call.tool)
        .ok_or_else(|| no_such_tool(&call.tool, &tools))?;
    let arguments = arguments::of_tool(tool, given, &call.args)?;

    context.screen.progress(None, &format!("calling {}", tool.name));
    // Dropped before it became a task, the call is cancelled.
    let called = context.interrupts.or(session.client.call(&call.tool, arguments)).await;
    let called = called.map_err(|_| CommandError::new(Outcome::Cancelled, "interrupted; the call was cancelled"));
    match called? {
        Ok(ToolCall::Immediate(result)) => Ok(follow::report(&result)),
        Ok(ToolCall::Deferred(handle)) if call.detach => {
            let task = handle.saved();
            let resume = session.tracker.resume_command(task);
            let mut report = Report::new(Outcome::Success)
                .text(task.id().as_str())
                .task(task)
                .member("status", "working")
                .member("resume", resume.clone());
            if session.tracker.server.is_child() {
                report = report.note("Its server ends with this command; what it does not store is lost.");
            }
            context.screen.hint(&format!("To go on with it: {resume}"));
            Ok(report)
        }
        Ok(ToolCall::Deferred(handle)) => follow::follow(context, session, handle, true).await,
        Err(error) => Err(follow::command_error(error, &session.tracker, None)),
    }
}

fn no_such_tool(name: &str, tools: &[Tool]) -> CommandError {
    let names: Vec<_> = tools.iter().map(|tool| text::line(&tool.name)).collect();
    CommandError::usage(match names.is_empty() {
        true => format!("the server has no tool {name:?}, nor any other"),
        false => format!("the server has no tool {name:?}; it has {}", names.join(", ")),
    })
}
