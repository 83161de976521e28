//! `tools/call`, with its rounds of input requests, until there is a result or a task.

use std::time::Duration;

use rmcp::model::ErrorCode;
use serde_json::{Map, Value};

use super::request::Timeout;
use super::response::{self, CallResponse};
use super::wire::Verbatim;
use super::{ClientError, InputNeeded, InputRequest, SavedTask, TaskClient, TaskEvent, TaskHandle, ToolCall};

/// How many rounds of questions one call may take. No user fills in more forms than this; a server may ask for ever.
const MAX_ROUNDS: u32 = 100;

/// The longest wait before a round that asks nothing.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// Sends `tools/call`, again for each round that the server asks for.
pub(super) async fn call(
    client: &TaskClient,
    tool: &str,
    arguments: Map<String, Value>,
) -> Result<ToolCall, ClientError> {
    let mut params = Map::new();
    params.insert("name".to_owned(), tool.into());
    params.insert("arguments".to_owned(), Value::Object(arguments));
    let mut has_listed = false;
    let mut pause = client.connection.pacing.floor;
    for _ in 0..MAX_ROUNDS {
        let answer = match send_call(client, params.clone()).await {
            // Arguments that the server wants in headers too are known only from its list of tools.
            Err(ClientError::Refused(error)) if error.code == ErrorCode::HEADER_MISMATCH && !has_listed => {
                has_listed = true;
                client.tools().await?;
                continue;
            }
            answer => answer?,
        };
        let (requests, state) = match answer {
            CallResponse::Complete(result) => return Ok(ToolCall::Immediate(result)),
            CallResponse::Task(task) => {
                let connection = &client.connection;
                let (server, endpoint) = (connection.server_name(), connection.endpoint.clone());
                let saved = SavedTask::created(&task, tool, server, endpoint, connection.clock.now());
                client.observer.tell(TaskEvent::Created(&saved));
                client.observer.tell(TaskEvent::Status(&task));
                return Ok(ToolCall::Deferred(TaskHandle {
                    client: client.clone(),
                    saved,
                    is_new: true,
                }));
            }
            CallResponse::InputRequired { requests, state } => (requests, state),
        };
        if requests.is_empty() {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
        let answers = answer_all(client, requests).await?;
        params.insert("inputResponses".to_owned(), Value::Object(answers));
        match state {
            Some(state) => params.insert("requestState".to_owned(), state),
            None => params.remove("requestState"),
        };
    }
    Err(ClientError::protocol(format!(
        "the server wants the call again after {MAX_ROUNDS} rounds"
    )))
}

async fn send_call(client: &TaskClient, params: Map<String, Value>) -> Result<CallResponse, ClientError> {
    let progress = |report: rmcp::model::ProgressNotificationParam| {
        client.observer.tell(TaskEvent::Progress {
            progress: report.progress,
            total: report.total,
            message: report.message.as_deref(),
        });
    };
    let connection = &client.connection;
    let timeout = connection.pacing.call_timeout.map_or(Timeout::Never, Timeout::Progress);
    let answer = connection
        .request("tools/call", params, Verbatim::default(), timeout, progress)
        .await
        .map_err(|error| ClientError::from(error).with_handler_hint(&connection.input_support))?;
    Ok(response::decode_call(answer, connection.has_tasks())?)
}

/// Every question of a round: the call is repeated with all answers.
async fn answer_all(client: &TaskClient, requests: Vec<InputRequest>) -> Result<Map<String, Value>, ClientError> {
    let needed = |reason: &str| {
        ClientError::InputNeeded(Box::new(InputNeeded {
            task: None,
            requests: requests.clone(),
            reason: reason.to_owned(),
        }))
    };
    let mut answers = Map::new();
    for request in &requests {
        let answer = client.connection.input_support.answer(request);
        let answer = answer
            .ok_or_else(|| needed(client.connection.input_support.unsupported_reason()))?
            .await;
        answers.insert(
            request.key().to_owned(),
            answer.map_err(|error| needed(&error.to_string()))?,
        );
    }
    Ok(answers)
}
