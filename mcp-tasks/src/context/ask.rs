//! Questions to the client: what they have in common, whatever they ask.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_tasks_core::{Asked, EntryKind, Fingerprint, InputKind, Json, Question, Refusal};
use serde_json::Value;

use crate::run::Run;
use crate::tool::elicit_error::ElicitError;

/// A question that is asked when it is awaited; see [`ToolContext::elicit`](crate::ToolContext::elicit).
///
/// Its ordinal among the calls on the context was taken when it was made. It resolves when its answer has come; until then
/// the run is parked, so a wrapper around it (a time-out, `select!`) does not end it.
#[must_use = "a question that is not awaited asks nothing"]
pub struct Asking<T> {
    question: OpenQuestion,
    decode: fn(&Json) -> Result<T, ElicitError>,
}

impl<T> fmt::Debug for Asking<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking")
            .field("kind", &self.question.kind)
            .field("ordinal", &self.question.ordinal)
            .field("key", &self.question.key)
            .finish_non_exhaustive()
    }
}

impl<T> Asking<T> {
    pub(super) fn new(
        run: Arc<Run>,
        kind: InputKind,
        label: String,
        request: Result<Json, ElicitError>,
        decode: fn(&Json) -> Result<T, ElicitError>,
    ) -> Self {
        let ordinal = run.take_ordinal();
        Self {
            question: OpenQuestion {
                run,
                ordinal,
                kind,
                label,
                key: None,
                request,
                prepared: None,
            },
            decode,
        }
    }

    /// Publishes the question under `key` instead of `elicit-<n>`. A key is used once in a task's life, has no `~` and does
    /// not start with `elicit-`; a body that breaks this fails its task.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.question.key = Some(key.into());
        self.question.prepared = None;
        self
    }
}

impl<T> Future for Asking<T> {
    type Output = Result<T, ElicitError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let decode = self.decode;
        self.question.poll(cx).map(|answer| decode(&answer?))
    }
}

struct OpenQuestion {
    run: Arc<Run>,
    /// The question's ordinal; `None` where it was asked outside the run's own future.
    ordinal: Option<u32>,
    kind: InputKind,
    label: String,
    key: Option<String>,
    request: Result<Json, ElicitError>,
    prepared: Option<Prepared>,
}

/// What a question writes into the ledger and on the wire.
struct Prepared {
    request: Json,
    fingerprint: Fingerprint,
    refusal: Option<Json>,
}

impl OpenQuestion {
    fn prepare(&self) -> Result<Prepared, ElicitError> {
        let request = self.request.clone()?;
        let asked: Value = request.decode().map_err(ElicitError::invalid)?;
        let name = self.key.as_deref().unwrap_or_default();
        let fingerprint = Fingerprint::of(self.kind.entry_kind().as_str(), name, Some(&asked));
        let refusal = (!self.run.capabilities.allow(self.kind)).then(|| Refusal::capability(self.kind).to_json());
        Ok(Prepared {
            request,
            fingerprint,
            refusal,
        })
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Json, ElicitError>> {
        let Some(ordinal) = self.ordinal.filter(|_| self.run.is_polling()) else {
            return Poll::Ready(Err(ElicitError::Detached));
        };
        let prepared = match self.prepared.take() {
            Some(prepared) => prepared,
            None => self.prepare()?,
        };
        let mut question = Question::new(self.kind, &self.label, &prepared.request, prepared.fingerprint);
        question.key = self.key.as_deref();
        question.refusal = prepared.refusal.as_ref();
        let asked = self.run.cursor().ask(ordinal, &question);
        match asked {
            Asked::Delivered { kind, response } => {
                self.run.wakers.stop_waiting(ordinal);
                self.run.wakers.wake_waiting();
                Poll::Ready(if kind == EntryKind::Refusal {
                    Err(refused(&response))
                } else {
                    Ok(response)
                })
            }
            _ => {
                self.run.wakers.wait(ordinal, cx.waker());
                self.prepared = Some(prepared);
                Poll::Pending
            }
        }
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        if let Some(ordinal) = self.ordinal {
            self.run.wakers.stop_waiting(ordinal);
        }
    }
}

fn refused(response: &Json) -> ElicitError {
    match response.decode::<Refusal>() {
        Ok(Refusal::Capability { kind, .. }) => ElicitError::NotSupported { kind },
        Ok(Refusal::InvalidAnswers { detail, .. }) => ElicitError::InvalidAnswers { detail },
        Ok(Refusal::Client { detail, .. }) => ElicitError::Client { detail },
        Ok(_) => ElicitError::Client {
            detail: response.get().to_owned(),
        },
        Err(error) => ElicitError::undecodable(&error),
    }
}
