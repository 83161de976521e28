//! Work whose result is kept.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

use mcp_tasks_core::{EntryKind, Fingerprint, Json, Looked};
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::run::Run;
use crate::run::clock::Timer;
use crate::run::polling::poll_outside_run;
use crate::tool::error::ToolError;

/// The outcome of a step as the ledger keeps it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StepOutcome<T> {
    Value(T),
    /// An error that is a result for the client to read.
    ToolError(CallToolResult),
    /// A JSON-RPC error.
    ProtocolError(ErrorData),
}

impl<T> StepOutcome<T> {
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

/// How often a step's work is tried again after an error, and after which delays, before the error is recorded and reaches
/// the function.
///
/// ```
/// use std::time::Duration;
/// use mcp_tasks::Retry;
///
/// # async fn fetch(url: &str) -> Result<String, std::io::Error> { Ok(url.to_owned()) }
/// # async fn f(ctx: mcp_tasks::ToolContext, url: String) -> Result<(), mcp_tasks::ToolError> {
/// let patient = Retry::times(5).first_delay(Duration::from_millis(200)).longest_delay(Duration::from_secs(10));
/// let page = ctx.step_with_retry("fetch", patient, || fetch(&url)).await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Retry {
    times: usize,
    first: Duration,
    longest: Duration,
}

impl Retry {
    /// At most `times` more tries, after 100 ms, 200 ms, and so on up to 30 s, each a little longer by chance.
    pub const fn times(times: usize) -> Self {
        // Short enough for a hiccup of the network, long enough not to flood a service that is down.
        Self {
            times,
            first: Duration::from_millis(100),
            longest: Duration::from_secs(30),
        }
    }

    /// How long to wait before the first further try; each later wait is twice as long as the one before.
    pub const fn first_delay(mut self, delay: Duration) -> Self {
        self.first = delay;
        self
    }

    /// The longest wait between two tries.
    pub const fn longest_delay(mut self, delay: Duration) -> Self {
        self.longest = delay;
        self
    }

    fn delays(self) -> ExponentialBackoff {
        ExponentialBuilder::default()
            .with_min_delay(self.first)
            .with_max_delay(self.longest)
            .with_max_times(self.times)
            .with_jitter()
            .build()
    }
}

/// The work of a [`step`](crate::ToolContext::step): a future of a `Result`, such as an async block. It is implemented for every
/// such future, and exists for a readable error on anything else.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the work of a step",
    label = "not a future of a `Result`",
    note = "write `|| async {{ .. }}` or `|| async move {{ .. }}` with the work inside, and let it end with a `Result`, as in `Ok::<_, ToolError>(value)`"
)]
pub trait StepWork<T, E>: Future<Output = Result<T, E>> {}

#[diagnostic::do_not_recommend]
impl<T, E, F: Future<Output = Result<T, E>>> StepWork<T, E> for F {}

/// A piece of work whose result is kept; see [`ToolContext::step`](crate::ToolContext::step).
#[must_use = "a step that is not awaited does nothing"]
pub struct Step<T, F, Fut> {
    call: Result<StepCall, ToolError>,
    work: Option<F>,
    /// Calls the work, if it can still be called.
    start: fn(&mut Option<F>) -> Option<Fut>,
    delays: Option<ExponentialBackoff>,
    state: StepState<Fut>,
    value: PhantomData<fn() -> T>,
}

enum StepState<Fut> {
    /// Reading the ledger, or waiting for its turn.
    Reading,
    /// Calling the work, which may panic.
    Calling,
    Working(Pin<Box<Fut>>),
    /// Waiting for the next try.
    Waiting(Timer),
}

// The work is called and not polled in call; its future is boxed.
impl<T, F, Fut> Unpin for Step<T, F, Fut> {}

impl<T, F, Fut> fmt::Debug for Step<T, F, Fut> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.call.as_ref().map(|call| &*call.name).unwrap_or_default();
        f.debug_struct("Step").field("name", &name).finish_non_exhaustive()
    }
}

impl<T, F, Fut> Step<T, F, Fut> {
    pub(super) fn new(run: Arc<Run>, name: &str, work: F) -> Self
    where
        F: FnOnce() -> Fut,
    {
        Self {
            // The ordinal is taken here, when the call is made, and not when it is first polled.
            call: StepCall::new(run, name.to_owned()),
            work: Some(work),
            start: |work| work.take().map(|work| work()),
            delays: None,
            state: StepState::Reading,
            value: PhantomData,
        }
    }

    pub(super) fn retrying(run: Arc<Run>, name: &str, retry: Retry, work: F) -> Self
    where
        F: FnMut() -> Fut,
    {
        let mut step = Self::new(run, name, work);
        step.start = |work| work.as_mut().map(|work| work());
        step.delays = Some(retry.delays());
        step
    }
}

impl<T, E, F, Fut> Future for Step<T, F, Fut>
where
    T: Serialize + DeserializeOwned,
    E: Into<ToolError>,
    Fut: Future<Output = Result<T, E>>,
{
    type Output = Result<T, ToolError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let call = match &this.call {
            Ok(call) if call.run.is_polling() => call,
            _ => return Poll::Ready(Err(detached())),
        };
        loop {
            match &mut this.state {
                StepState::Reading => match ready!(call.poll_recorded(cx)) {
                    Some(recorded) => return Poll::Ready(call.decode(&recorded)),
                    None => this.state = StepState::Calling,
                },
                StepState::Waiting(delay) => {
                    if delay.as_mut().poll(cx).is_pending() {
                        call.run.wakers.step_waits(call.ordinal, cx.waker());
                        return Poll::Pending;
                    }
                    this.state = StepState::Calling;
                }
                StepState::Calling => {
                    call.notify_call();
                    match poll_outside_run(|| (this.start)(&mut this.work)) {
                        Some(work) => this.state = StepState::Working(Box::pin(work)),
                        None => return Poll::Ready(Err(polled_after_end())),
                    }
                }
                StepState::Working(work) => {
                    let Poll::Ready(outcome) = poll_outside_run(|| work.as_mut().poll(cx)) else {
                        call.run.wakers.step_waits(call.ordinal, cx.waker());
                        return Poll::Pending;
                    };
                    if outcome.is_err()
                        && let Some(delay) = this.delays.as_mut().and_then(Iterator::next)
                    {
                        let until = call.run.now().saturating_add(delay);
                        this.state = StepState::Waiting(call.run.timer(until));
                        continue;
                    }
                    let recorded = call.encode(outcome)?;
                    this.state = StepState::Reading;
                    call.record(recorded);
                }
            }
        }
    }
}

impl<T, F, Fut> Drop for Step<T, F, Fut> {
    fn drop(&mut self) {
        if let (Ok(call), StepState::Calling | StepState::Working(_) | StepState::Waiting(_)) =
            (&self.call, &self.state)
        {
            call.run.wakers.step_ended(call.ordinal);
            call.run.cursor().abandon_step();
        }
    }
}

/// The call of one step: its ordinal, and what it reads from and writes to the ledger.
struct StepCall {
    run: Arc<Run>,
    name: String,
    ordinal: u32,
    fingerprint: Fingerprint,
}

impl StepCall {
    fn new(run: Arc<Run>, name: String) -> Result<Self, ToolError> {
        let ordinal = run.take_ordinal().ok_or_else(detached)?;
        let fingerprint = Fingerprint::of(EntryKind::Step.as_str(), &name, None);
        Ok(Self {
            run,
            name,
            ordinal,
            fingerprint,
        })
    }

    /// The recorded outcome once its turn has come, or `None` once the work may start.
    fn poll_recorded(&self, cx: &mut Context<'_>) -> Poll<Option<Json>> {
        let mut cursor = self.run.cursor();
        match cursor.look(self.ordinal, EntryKind::Step, &self.name, self.fingerprint) {
            Looked::Delivered { response, .. } => {
                drop(cursor);
                self.run.wakers.stop_waiting(self.ordinal);
                self.run.wakers.wake_waiting();
                Poll::Ready(Some(response))
            }
            Looked::Absent if cursor.begin_step() => {
                drop(cursor);
                self.run.wakers.stop_waiting(self.ordinal);
                Poll::Ready(None)
            }
            _ => {
                drop(cursor);
                self.run.wakers.wait(self.ordinal, cx.waker());
                Poll::Pending
            }
        }
    }

    /// Tells a test's watcher that the work is about to be called.
    fn notify_call(&self) {
        if let Some(observer) = self.run.observer() {
            observer.step_called(self.ordinal, &self.name);
        }
    }

    /// The outcome as the ledger keeps it. One that has no JSON form, or cannot be read back, is recorded as an error: the work
    /// was done, and a replay must find that.
    fn encode<T, E>(&self, outcome: Result<T, E>) -> Result<Json, ToolError>
    where
        T: Serialize + DeserializeOwned,
        E: Into<ToolError>,
    {
        let problem = match Json::of(&StepOutcome::of(outcome)) {
            Ok(encoded) => match encoded.decode::<StepOutcome<T>>() {
                Ok(_) => return Ok(encoded),
                Err(error) => error,
            },
            Err(error) => error,
        };
        let message = format!("the result of step {:?} cannot be kept as JSON: {problem}", self.name);
        let unkeepable = StepOutcome::<()>::ToolError(CallToolResult::error(vec![ContentBlock::text(message)]));
        Json::of(&unkeepable).map_err(|error| ToolError::new(error.to_string()))
    }

    /// Records the outcome in the ledger.
    fn record(&self, outcome: Json) {
        self.run.wakers.step_ended(self.ordinal);
        if let Some(observer) = self.run.observer() {
            observer.step_recorded(self.ordinal);
        }
        self.run
            .cursor()
            .finish_step(self.ordinal, &self.name, self.fingerprint, outcome);
    }

    fn decode<T: DeserializeOwned>(&self, recorded: &Json) -> Result<T, ToolError> {
        recorded
            .decode::<StepOutcome<T>>()
            .map_err(|error| {
                let message = format!(
                    "handler changed: the kept result of step {:?} does not fit its type any more: {error}",
                    self.name
                );
                ToolError::protocol(ErrorData::invalid_params(message, None))
            })?
            .into_result()
    }
}

impl Drop for StepCall {
    fn drop(&mut self) {
        self.run.wakers.stop_waiting(self.ordinal);
    }
}

/// A step that is polled after it ended, which is a mistake of the body.
fn polled_after_end() -> ToolError {
    ToolError::protocol(ErrorData::internal_error("a step was polled after it ended", None))
}

fn detached() -> ToolError {
    ToolError::new(
        "a step was taken outside the tool's own future (inside another step, in a spawned task, or after the tool \
         returned); take it in the function itself, or with join!",
    )
}
