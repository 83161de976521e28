//! `mcp-tasks answer`

use serde_json::{Map, Value};

use super::follow::command_error;
use super::session::{Context, Session};
use crate::answers::{Answers, to_response};
use crate::args;
use crate::arguments;
use crate::content;
use crate::outcome::{CommandError, Outcome, Report};
use crate::prompt::{Prompt, Unattended};
use mcp_tasks::client::{Elicited, InputKind, InputRequest, SavedTask, TaskState};

pub(super) async fn run(context: &mut Context, answer: &args::Answer) -> Result<Report, CommandError> {
    let (server, task) = context.target(&answer.target)?;
    let given = answer.json.as_deref().map(arguments::json).transpose()?;
    let send = async |context: &mut Context, session: &Session| in_session(context, session, answer, task, given).await;
    context.with_session(server, Unattended, send).await
}

async fn in_session(
    context: &mut Context,
    session: &Session,
    answer: &args::Answer,
    task: SavedTask,
    given: Option<Map<String, Value>>,
) -> Result<Report, CommandError> {
    let mut handle = session.resume(task)?;
    let shown = context.interrupts.or(handle.get()).await?;
    let shown = shown.map_err(|error| command_error(error, &session.tracker, Some(handle.saved())))?;
    let asked = match &shown.state {
        TaskState::InputRequired { requests, .. } => requests.as_slice(),
        state => {
            let message = format!("the task asks nothing: it is {}", state.status());
            return Err(CommandError::usage(message).with(|report| report.task(handle.saved())));
        }
    };
    let request = chosen(asked, answer.key.as_deref())?;
    let response = response(context, answer, given, request).await?;
    let key = request.key().to_owned();
    let sent = context.interrupts.or(handle.answer(&key, response)).await?;
    // That it was answered, and what has not arrived.
    session.tracker.save(handle.saved());
    sent.map_err(|error| command_error(error, &session.tracker, Some(handle.saved())))?;
    Ok(Report::new(Outcome::Success)
        .text(format!("answered {}", crate::text::line(&key)))
        .task(handle.saved())
        .member("key", key))
}

/// The question that is meant.
fn chosen<'r>(asked: &'r [InputRequest], key: Option<&str>) -> Result<&'r InputRequest, CommandError> {
    let open = || asked.iter().map(content::question).collect::<Vec<_>>().join("\n");
    match (key, asked) {
        (Some(key), _) => asked
            .iter()
            .find(|request| request.key() == key)
            .ok_or_else(|| CommandError::usage(format!("the task does not ask {key:?}; it asks:\n{}", open()))),
        (None, [one]) => Ok(one),
        (None, []) => Err(CommandError::usage("the task asks nothing at this moment; try again")),
        (None, _) => Err(CommandError::usage(format!(
            "the task asks more than one question; say which, by --key:\n{}",
            open()
        ))),
    }
}

/// The answer, from the command line or else from the user.
async fn response(
    context: &mut Context,
    answer: &args::Answer,
    given: Option<Map<String, Value>>,
    request: &InputRequest,
) -> Result<Value, CommandError> {
    if answer.decline {
        return Ok(to_response(Elicited::Decline));
    }
    if answer.dismiss {
        return Ok(to_response(Elicited::Cancel));
    }
    let params = request.raw().get("params");
    let param = |name: &str| params.and_then(|params| params.get(name));
    let typed = given.is_some() || !answer.args.is_empty();
    let prompt = Prompt::new(&context.screen, Answers::default(), context.interrupts.sender());
    let message = request.message().unwrap_or_default();
    let asked = match request.kind() {
        Some(InputKind::Form) => {
            let schema = match param("requestedSchema") {
                Some(Value::Object(schema)) => schema.clone(),
                _ => Map::new(),
            };
            if typed || answer.accept {
                let content = arguments::object(&Value::Object(schema), given.unwrap_or_default(), &answer.args);
                let content = content.map_err(|problems| {
                    CommandError::usage(format!(
                        "the answer does not fit, and nothing was sent:\n  {}\n{}",
                        problems.join("\n  "),
                        content::question(request)
                    ))
                })?;
                return Ok(to_response(Elicited::Accept(content)));
            }
            context
                .interrupts
                .or(prompt.fill(request.key(), message, schema))
                .await?
        }
        Some(InputKind::Url) if typed => {
            return Err(CommandError::usage(
                "the question is about a page, and has no fields; --accept, --decline or --dismiss",
            ));
        }
        Some(InputKind::Url) if answer.accept => return Ok(serde_json::json!({"action": "accept"})),
        Some(InputKind::Url) => {
            let url = param("url").and_then(Value::as_str).unwrap_or_default();
            let visited = context.interrupts.or(prompt.visit(request.key(), message, url)).await?;
            return match visited {
                Ok(Elicited::Accept(())) => Ok(serde_json::json!({"action": "accept"})),
                Ok(Elicited::Decline) => Ok(to_response(Elicited::Decline)),
                Ok(Elicited::Cancel) => Ok(to_response(Elicited::Cancel)),
                Err(error) => Err(CommandError::new(Outcome::InputNeeded, error.to_string())),
            };
        }
        _ => {
            return Err(CommandError::new(
                Outcome::InputNeeded,
                format!("this program has no answer to it:\n{}", content::question(request)),
            ));
        }
    };
    match asked {
        Ok(answer) => Ok(to_response(answer)),
        Err(error) => Err(CommandError::new(Outcome::InputNeeded, error.to_string())),
    }
}
