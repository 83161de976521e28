//! Questions to the user.

use std::any::TypeId;
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};

use mcp_tasks_core::form::FormSchema;
use mcp_tasks_core::{Asked, ElicitAnswer, EntryKind, Fingerprint, InputKind, Json, Question, Refusal, TaskSupport};
use rmcp::ErrorData;
use serde_json::{Value, json};

use crate::engine::{Carrier, Run};
use crate::error::missing_capability;
use crate::{ElicitForm, form};

/// What the user did with a question. All three are answers: none is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the protocol has three actions, and a body matches all of them"
)]
pub enum Elicited<T> {
    /// Agreed, with the form filled in.
    Accept(T),
    /// Said no.
    Decline,
    /// Closed the question without an answer.
    Cancel,
}

impl<T> Elicited<T> {
    /// The form, if the user agreed.
    #[must_use]
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accept(form) => Some(form),
            Self::Decline | Self::Cancel => None,
        }
    }
}

/// Why there is no answer to a question, not even a "no".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElicitError {
    /// The client of this request did not declare that it can ask its user.
    #[error("this needs an answer from the user, and the client declared no support for elicitation in form mode")]
    NotSupported,
    /// The call runs synchronously, and nothing can carry a question back to the client.
    #[error(
        "this needs an answer from the user, which the tool can ask for only as a task: the request did not declare the \
         extension io.modelcontextprotocol/tasks"
    )]
    NeedsTask,
    /// The tool is an `#[mcp_tool]`, which never is a task and so has no way to ask.
    #[error("this needs an answer from the user, and the tool cannot ask for one: make it an #[mcp_task]")]
    NeverTask,
    /// The user's answers did not fit the form, three times.
    #[error("the user's answers did not fit the form: {detail}")]
    InvalidAnswers {
        /// What did not fit the last time.
        detail: String,
    },
    /// The form is not one the protocol allows: an object of plain values.
    #[error("the form cannot be asked: {detail}")]
    InvalidForm {
        /// What is wrong with it.
        detail: String,
    },
    /// The answer fits the form's schema but not the type behind it.
    #[error("the answer does not fit the type of the form: {detail}")]
    Undecodable {
        /// What serde said.
        detail: String,
    },
    /// The question was put outside the tool's own future, such as in a spawned task or inside a step.
    #[error(
        "a question was asked outside the tool's own future (inside a step, in a spawned task, or after the tool \
         returned); ask it in the function itself, or with join!"
    )]
    Detached,
}

impl ElicitError {
    /// The JSON-RPC error that stands for this one, where the protocol has one: `-32021` with the capability that would
    /// be needed. The others are errors of the tool.
    #[must_use]
    pub fn to_error_data(&self) -> Option<ErrorData> {
        let required = match self {
            Self::NotSupported => json!({"elicitation": {"form": {}}}),
            Self::NeedsTask => json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}),
            _ => return None,
        };
        Some(missing_capability(self.to_string(), required))
    }
}

/// A question that is asked when it is awaited; see [`ToolContext::elicit`](crate::ToolContext::elicit).
#[must_use = "a question that is not awaited asks nothing"]
pub struct Elicit<T> {
    run: Arc<Run>,
    /// The question's place; `None` where it was put from outside the run's own future.
    ordinal: Option<u32>,
    message: String,
    key: Option<String>,
    prepared: Option<Prepared>,
    form: PhantomData<fn() -> T>,
}

/// What a question puts into the ledger and on the wire.
struct Prepared {
    request: Json,
    fingerprint: Fingerprint,
    refusal: Option<Json>,
}

impl<T> fmt::Debug for Elicit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elicit")
            .field("ordinal", &self.ordinal)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl<T: ElicitForm> Elicit<T> {
    pub(super) fn new(run: Arc<Run>, message: String) -> Self {
        let ordinal = run.take_ordinal();
        Self {
            run,
            ordinal,
            message,
            key: None,
            prepared: None,
            form: PhantomData,
        }
    }

    /// Publishes the question under `key` instead of `elicit-<n>`. A key is used once in a task's life, has no `~` and
    /// does not start with `elicit-`; a body that breaks this fails its task.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self.prepared = None;
        self
    }

    fn prepare(&self) -> Result<Prepared, ElicitError> {
        let allowed = self.run.capabilities.allow(InputKind::Form);
        let refusal = match &self.run.carrier {
            Carrier::Synchronous { .. } if !allowed => return Err(ElicitError::NotSupported),
            Carrier::Synchronous {
                support: TaskSupport::Never,
            } => return Err(ElicitError::NeverTask),
            Carrier::Synchronous { .. } => return Err(ElicitError::NeedsTask),
            Carrier::Task { .. } if allowed => None,
            Carrier::Task { .. } => Some(Refusal::Capability { kind: InputKind::Form }.to_json()),
        };
        let schema = checked_schema::<T>()?;
        let request = json!({
            "method": "elicitation/create",
            "params": {"mode": "form", "message": self.message, "requestedSchema": *schema},
        });
        let name = self.key.as_deref().unwrap_or_default();
        let fingerprint = Fingerprint::of(EntryKind::Elicit.as_str(), name, Some(&request));
        let request = Json::of(&request).map_err(|error| ElicitError::InvalidForm {
            detail: error.to_string(),
        })?;
        Ok(Prepared {
            request,
            fingerprint,
            refusal,
        })
    }
}

impl<T: ElicitForm> Future for Elicit<T> {
    type Output = Result<Elicited<T>, ElicitError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(ordinal) = this.ordinal.filter(|_| this.run.is_polling()) else {
            return Poll::Ready(Err(ElicitError::Detached));
        };
        let prepared = match this.prepared.take() {
            Some(prepared) => prepared,
            None => this.prepare()?,
        };
        let mut question = Question::new(InputKind::Form, &this.message, &prepared.request, prepared.fingerprint);
        question.key = this.key.as_deref();
        question.refusal = prepared.refusal.as_ref();
        let asked = this.run.cursor().ask(ordinal, &question);
        match asked {
            Asked::Delivered { kind, response } => {
                this.run.stop_waiting(ordinal);
                this.run.wake_waiting();
                Poll::Ready(decode(kind, &response))
            }
            _ => {
                this.run.wait(ordinal, cx.waker());
                this.prepared = Some(prepared);
                Poll::Pending
            }
        }
    }
}

impl<T> Drop for Elicit<T> {
    fn drop(&mut self) {
        if let Some(ordinal) = self.ordinal {
            self.run.stop_waiting(ordinal);
        }
    }
}

fn decode<T: ElicitForm>(kind: EntryKind, response: &Json) -> Result<Elicited<T>, ElicitError> {
    let undecodable = |error: serde_json::Error| ElicitError::Undecodable {
        detail: error.to_string(),
    };
    if kind == EntryKind::Refusal {
        return Err(match response.decode::<Refusal>().map_err(undecodable)? {
            Refusal::InvalidAnswers { detail } => ElicitError::InvalidAnswers { detail },
            _ => ElicitError::NotSupported,
        });
    }
    match response.decode::<ElicitAnswer>().map_err(undecodable)? {
        ElicitAnswer::Accept { content } => serde_json::from_value(Value::Object(content))
            .map(Elicited::Accept)
            .map_err(undecodable),
        ElicitAnswer::Decline => Ok(Elicited::Decline),
        _ => Ok(Elicited::Cancel),
    }
}

/// The form of `T` as the protocol has it, made and checked once in the process's life: a replay asks for it again and
/// again.
fn checked_schema<T: ElicitForm>() -> Result<Arc<Value>, ElicitError> {
    type Forms = Mutex<HashMap<TypeId, Result<Arc<Value>, ElicitError>>>;
    static FORMS: OnceLock<Forms> = OnceLock::new();

    let forms = FORMS.get_or_init(Forms::default);
    let known = forms.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(schema) = known.get(&TypeId::of::<T>()) {
        return schema.clone();
    }
    drop(known);
    let schema = form::form_schema::<T>();
    let checked = match FormSchema::parse(&schema.to_string()) {
        Ok(_) => Ok(Arc::new(schema)),
        Err(error) => Err(ElicitError::InvalidForm {
            detail: error.to_string(),
        }),
    };
    forms
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(TypeId::of::<T>(), checked.clone());
    checked
}
