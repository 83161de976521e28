//! rmcp's client, driven by hand.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::ClientHandler;
use rmcp::model::*;
use rmcp::service::{NotificationContext, RequestContext, RoleClient, RunningService, ServiceError};
use serde_json::{Value, json};

use super::Person;

pub(crate) struct Handler {
    config: ClientConfig,
    person: Arc<dyn Person>,
    asked: Arc<Mutex<Vec<Value>>>,
    progress: Arc<Mutex<Vec<f64>>>,
}

impl Handler {
    pub(super) fn new(config: ClientConfig, person: impl Person) -> Self {
        Self {
            config,
            person: Arc::new(person),
            asked: Arc::default(),
            progress: Arc::default(),
        }
    }

    async fn answer<T: serde::de::DeserializeOwned>(&self, request: Value) -> Result<T, ErrorData> {
        self.asked.lock().unwrap().push(request.clone());
        let answer = (self.person)(&request)?;
        if answer == super::SILENCE {
            std::future::pending::<()>().await;
        }
        serde_json::from_value(answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }
}

#[expect(deprecated, reason = "sampling and roots are part of both revisions still")]
impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.answer(json!({"method": "elicitation/create", "params": request}))
            .await
    }

    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.answer(json!({"method": "sampling/createMessage", "params": request}))
            .await
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        self.answer(json!({"method": "roots/list"})).await
    }

    async fn on_progress(&self, report: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.lock().unwrap().push(report.progress);
    }
}

/// What a call came to: its text and whether it is an error's, or the code and words of a JSON-RPC error.
pub(crate) type Outcome = Result<(String, bool), (i32, String)>;

pub(crate) fn done(text: impl Into<String>) -> Outcome {
    Ok((text.into(), false))
}

pub(crate) struct Client {
    pub(crate) service: RunningService<RoleClient, Handler>,
}

/// The answer to one request of the client's.
#[derive(Debug)]
pub(crate) enum Reply {
    Done(Outcome),
    Asked(Round),
    Task(String),
}

/// Questions by their keys, and what has to be sent back with their answers.
#[derive(Debug, Clone)]
pub(crate) struct Round {
    pub(crate) questions: Value,
    pub(crate) state: String,
}

impl Round {
    pub(crate) fn keys(&self) -> Vec<&str> {
        self.questions.as_object().unwrap().keys().map(String::as_str).collect()
    }
}

impl Reply {
    #[track_caller]
    pub(crate) fn asked(self) -> Round {
        match self {
            Self::Asked(round) => round,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn done(self) -> Outcome {
        match self {
            Self::Done(outcome) => outcome,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn task(self) -> String {
        match self {
            Self::Task(id) => id,
            other => panic!("{other:?}"),
        }
    }
}

fn outcome(result: &Value) -> Outcome {
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    Ok((text.to_owned(), result["isError"] == true))
}

fn error(error: &Value) -> Outcome {
    let message = error["message"].as_str().unwrap_or_default();
    Err((error["code"].as_i64().unwrap() as i32, message.to_owned()))
}

impl Client {
    /// What it was asked by the server itself.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.service.service().asked.lock().unwrap().clone()
    }

    pub(crate) fn progress(&self) -> Vec<f64> {
        self.service.service().progress.lock().unwrap().clone()
    }

    /// Any request, its params as they are given.
    pub(crate) async fn raw(&self, method: &str, params: Value) -> Result<Value, ErrorData> {
        let request = ClientRequest::CustomRequest(CustomRequest::new(method, Some(params)));
        match self.service.send_request(request).await {
            Ok(result) => Ok(serde_json::to_value(result).unwrap()),
            Err(ServiceError::McpError(error)) => Err(error),
            Err(other) => panic!("{other:?}"),
        }
    }

    /// One `tools/call`, with whatever members `more` adds to its params.
    pub(crate) async fn call(&self, tool: &str, arguments: &Value, more: Value) -> Reply {
        let mut params = json!({"name": tool, "arguments": arguments});
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        let result = match self.raw("tools/call", params).await {
            Ok(result) => result,
            Err(data) => return Reply::Done(error(&serde_json::to_value(data).unwrap())),
        };
        match result["resultType"].as_str() {
            Some("input_required") => Reply::Asked(Round {
                questions: result["inputRequests"].clone(),
                state: result["requestState"].as_str().unwrap().to_owned(),
            }),
            Some("task") => Reply::Task(result["taskId"].as_str().unwrap().to_owned()),
            _ => Reply::Done(outcome(&result)),
        }
    }

    pub(crate) async fn begin(&self, tool: &str, arguments: &Value) -> Reply {
        self.call(tool, arguments, json!({})).await
    }

    pub(crate) async fn retry(&self, tool: &str, arguments: &Value, round: &Round, responses: Value) -> Reply {
        let more = json!({"requestState": round.state, "inputResponses": responses});
        self.call(tool, arguments, more).await
    }

    pub(crate) async fn get(&self, id: &str) -> Value {
        self.raw("tasks/get", json!({"taskId": id})).await.unwrap()
    }

    pub(crate) async fn update(&self, id: &str, responses: Value) {
        let params = json!({"taskId": id, "inputResponses": responses});
        self.raw("tasks/update", params).await.unwrap();
    }

    /// The task, once it no longer works.
    pub(crate) async fn settled(&self, id: &str) -> Value {
        let look = async {
            loop {
                let task = self.get(id).await;
                if task["status"] != "working" {
                    return task;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(600), look).await.unwrap()
    }

    fn answers(&self, questions: &Value) -> Value {
        let person = &self.service.service().person;
        let questions = questions.as_object().unwrap().iter();
        questions
            .map(|(key, request)| (key.clone(), person(request).unwrap()))
            .collect()
    }

    /// Calls the tool and answers all it asks until it is over.
    pub(crate) async fn converse(&self, tool: &str, arguments: Value) -> Outcome {
        let mut reply = self.begin(tool, &arguments).await;
        for _ in 0..100 {
            match reply {
                Reply::Done(outcome) => return outcome,
                Reply::Asked(round) => {
                    let answers = self.answers(&round.questions);
                    reply = self.retry(tool, &arguments, &round, answers).await;
                }
                Reply::Task(id) => return self.see_through(&id).await,
            }
        }
        panic!("{tool} asks without an end")
    }

    /// Answers all the task asks until it is over.
    pub(crate) async fn see_through(&self, id: &str) -> Outcome {
        for _ in 0..100 {
            let task = self.settled(id).await;
            match task["status"].as_str() {
                Some("completed") => return outcome(&task["result"]),
                Some("failed") => return error(&task["error"]),
                Some("input_required") => self.update(id, self.answers(&task["inputRequests"])).await,
                _ => panic!("{task}"),
            }
        }
        panic!("{id} asks without an end")
    }
}
