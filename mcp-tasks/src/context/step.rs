//! Work whose result is kept.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use mcp_tasks_core::{EntryKind, Fingerprint, Json, Looked};
use rmcp::ErrorData;
use rmcp::model::CallToolResult;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::ToolError;
use crate::engine::{Run, apart};

/// The result of a step as the ledger keeps it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kept<T> {
    Value(T),
    /// An error that is a result for the client to read.
    ToolError(CallToolResult),
    /// A JSON-RPC error.
    ProtocolError(ErrorData),
}

impl<T> Kept<T> {
    fn of<E: Into<ToolError>>(outcome: Result<T, E>) -> Self {
        match outcome {
            Ok(value) => Self::Value(value),
            Err(error) => match error.into().into_outcome() {
                Ok(result) => Self::ToolError(result),
                Err(error) => Self::ProtocolError(error),
            },
        }
    }

    fn into_result(self) -> Result<T, ToolError> {
        match self {
            Self::Value(value) => Ok(value),
            Self::ToolError(result) => Err(ToolError::result(result)),
            Self::ProtocolError(error) => Err(ToolError::protocol(error)),
        }
    }
}

pub(super) fn step<T, E, F, Fut>(
    run: Arc<Run>,
    name: String,
    work: F,
) -> impl Future<Output = Result<T, ToolError>> + Send + use<T, E, F, Fut>
where
    T: Serialize + DeserializeOwned + Send,
    E: Into<ToolError> + Send,
    F: FnOnce() -> Fut + Send,
    Fut: Future<Output = Result<T, E>> + Send,
{
    // The place is taken here, when the call is made, and not when it is first polled.
    let place = Place::take(run, name);
    async move {
        let place = place?;
        if let Some(kept) = place.recorded_or_start().await? {
            return place.decode(&kept);
        }
        let running = Running(Some(&place));
        let mut work = pin!(apart(work));
        let outcome = poll_fn(|cx| apart(|| work.as_mut().poll(cx))).await;
        let kept = Json::of(&Kept::of(outcome)).map_err(|error| {
            ToolError::new(format_args!(
                "the result of step {:?} has no JSON form: {error}",
                place.name
            ))
        })?;
        running.finish(kept);
        let kept = place.delivered().await?;
        place.decode(&kept)
    }
}

/// A step's place among the calls of the run.
struct Place {
    run: Arc<Run>,
    name: String,
    ordinal: u32,
    fingerprint: Fingerprint,
}

impl Place {
    fn take(run: Arc<Run>, name: String) -> Result<Self, ToolError> {
        let ordinal = run.take_ordinal().ok_or_else(detached)?;
        let fingerprint = Fingerprint::of(EntryKind::Step.as_str(), &name, None);
        Ok(Self {
            run,
            name,
            ordinal,
            fingerprint,
        })
    }

    /// The kept result once its turn has come, or `None` once the work may start.
    async fn recorded_or_start(&self) -> Result<Option<Json>, ToolError> {
        poll_fn(|cx| {
            if !self.run.is_polling() {
                return Poll::Ready(Err(detached()));
            }
            let mut cursor = self.run.cursor();
            match cursor.look(self.ordinal, EntryKind::Step, &self.name, self.fingerprint) {
                Looked::Delivered { response, .. } => {
                    drop(cursor);
                    self.run.stop_waiting(self.ordinal);
                    self.run.wake_waiting();
                    Poll::Ready(Ok(Some(response)))
                }
                Looked::Absent if cursor.begin_step() => {
                    drop(cursor);
                    self.run.stop_waiting(self.ordinal);
                    Poll::Ready(Ok(None))
                }
                _ => {
                    drop(cursor);
                    self.run.wait(self.ordinal, cx.waker());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// The result, once it is stored and its turn has come.
    async fn delivered(&self) -> Result<Json, ToolError> {
        match self.recorded_or_start().await? {
            Some(kept) => Ok(kept),
            // It was recorded a moment ago; it cannot be absent.
            None => Err(ToolError::protocol(ErrorData::internal_error(
                "the step's result is gone",
                None,
            ))),
        }
    }

    fn decode<T: DeserializeOwned>(&self, kept: &Json) -> Result<T, ToolError> {
        kept.decode::<Kept<T>>()
            .map_err(|error| {
                ToolError::new(format_args!(
                    "the kept result of step {:?} does not fit its type any more: {error}",
                    self.name
                ))
            })?
            .into_result()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.run.stop_waiting(self.ordinal);
    }
}

/// A step whose work is under way; dropping it says that the body gave it up.
struct Running<'a>(Option<&'a Place>);

impl Running<'_> {
    fn finish(mut self, kept: Json) {
        if let Some(place) = self.0.take() {
            place
                .run
                .cursor()
                .finish_step(place.ordinal, &place.name, place.fingerprint, kept);
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.0.take() {
            place.run.cursor().abandon_step();
        }
    }
}

fn detached() -> ToolError {
    ToolError::new(
        "a step was taken outside the tool's own future (inside another step, in a spawned task, or after the tool \
         returned); take it in the function itself, or with join!",
    )
}
