//! What a tool's function holds: the [`ToolContext`]. For authors of tools.
//!
//! * Questions: [`Asking`], [`Elicited`], [`InputKind`]
//! * Steps: [`Step`], [`StepWork`], [`Retry`]
//! * Progress: [`Progress`], [`Counter`], [`Gauge`], [`Fraction`]

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mcp_tasks_core::{Fingerprint, TaskId};
use tokio_util::sync::CancellationToken;

use crate::run::Run;
use crate::tool::error::ToolError;
use crate::tool::form::ElicitForm;
use crate::tool::invocation::Invocation;

pub use mcp_tasks_core::{Elicited, InputKind};

mod ask;
mod elicit;
mod journal;
mod progress;
mod step;

pub use ask::Asking;
pub use progress::{Counter, Fraction, Gauge, Progress};
pub use step::{Retry, Step, StepWork};

/// The handle a tool's function has on the run it is in: it asks questions, keeps the results of work, reports progress
/// and learns of a cancellation through it.
///
/// Declare a parameter of this type and the framework fills it in; it is no argument of the tool. The function does not
/// see whether it runs inside a call or as a task.
///
/// # What runs again
///
/// A task that waits for an answer holds no thread and no future. When the answer comes, the function runs again **from
/// its first line**, and the calls it made on its context before are answered from the task's ledger. So, between its
/// calls on the context, a function must do the same every time: work that takes long, costs money, or gives another
/// result the next time belongs into [`step`](Self::step).
///
/// Calls are told apart by their order. They must be made inside the function's own future: one made in a task spawned
/// with `tokio::spawn` gets an error. A `select!` over branches that call the context must be `biased`, or its random
/// order is a [mismatch](mcp_tasks_core::Mismatch).
///
/// ```
/// use mcp_tasks::prelude::*;
///
/// #[derive(Deserialize, JsonSchema, ElicitForm)]
/// struct Confirm {
///     publish: bool,
/// }
///
/// /// Prepare a report and, if the user agrees, publish it.
/// #[mcp_task(ttl = "PT2H")]
/// async fn report(ctx: ToolContext, quarter: u8) -> Result<String, ToolError> {
///     let pages = ctx.step("render", || async move { render(quarter).await }).await?;
///     let answer = ctx.elicit::<Confirm>(format!("{pages} pages are ready. Publish them?")).await?;
///     Ok(match answer {
///         Elicited::Accept(Confirm { publish: true }) => "published".to_owned(),
///         _ => "kept as a draft".to_owned(),
///     })
/// }
///
/// async fn render(quarter: u8) -> Result<u32, std::io::Error> {
///     Ok(u32::from(quarter) * 12)
/// }
/// ```
#[derive(Clone)]
pub struct ToolContext {
    run: Arc<Run>,
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("task_id", &self.task_id())
            .finish_non_exhaustive()
    }
}

impl Invocation {
    /// For a `ToolContext` parameter.
    ///
    /// # Errors
    /// There is none: every invocation is made with a run.
    pub fn context(&self) -> Result<ToolContext, ToolError> {
        self.run().map(ToolContext::new).ok_or_else(|| {
            ToolError::protocol(rmcp::ErrorData::internal_error(
                "the tool was called without a run",
                None,
            ))
        })
    }
}

impl ToolContext {
    pub(crate) const fn new(run: Arc<Run>) -> Self {
        Self { run }
    }

    /// The id of the task this run belongs to; `None` inside a synchronous call. For logs and for correlation with
    /// other systems: a function should not do other work because of it.
    #[must_use]
    pub fn task_id(&self) -> Option<&TaskId> {
        self.run.carrier.is_task().then_some(&self.run.id)
    }

    /// Asks the user to fill in the form `T`, with `message` as the words around it.
    ///
    /// A task becomes `input_required`, and the function goes on with the answer when it has come, which may be hours
    /// and a restart later. Inside a call the question goes back to the client, as an `InputRequiredResult`
    /// (2026-07-28) or as a request of the server's own (2025-11-25). Questions that are waited for at the same time
    /// (`join!`) are asked together, each under a key of its own: [`Asking::key`], or `elicit-<n>`. Nothing the
    /// function wraps around the wait (a time-out, `unwrap_or_default`, `select!`) keeps the question from being asked.
    ///
    /// The answer was checked against the form before the function sees it. One that does not fit is asked for again,
    /// up to three times in all.
    ///
    /// # Errors
    /// [`ElicitError`](crate::ElicitError) when the client cannot be asked, or answered three times with what does not
    /// fit. With `?` in a function that returns [`ToolError`] that becomes the error the protocol has for it.
    ///
    /// # Cancel safety
    /// A question that was never polled asks nothing. One that was is asked, even if its future is dropped at once.
    pub fn elicit<T: ElicitForm>(&self, message: impl Into<String>) -> Asking<Elicited<T>> {
        elicit::form(self.run.clone(), message.into())
    }

    /// As [`elicit`](Self::elicit), with a form that is known only now: `schema` is a JSON Schema of the kind the
    /// protocol allows, an object of plain values (2026-07-28, "Elicitation", "Requested Schema").
    ///
    /// ```
    /// # async fn f(ctx: mcp_tasks::ToolContext) -> Result<(), mcp_tasks::ToolError> {
    /// use serde_json::json;
    ///
    /// let colours = json!({
    ///     "type": "object",
    ///     "properties": {"colour": {"type": "string", "enum": ["red", "green"]}},
    ///     "required": ["colour"],
    /// });
    /// let answer = ctx.elicit_schema("Which colour?", &colours).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As `elicit`, and when the schema is not of that kind.
    pub fn elicit_schema(
        &self,
        message: impl Into<String>,
        schema: &serde_json::Value,
    ) -> Asking<Elicited<serde_json::Map<String, serde_json::Value>>> {
        elicit::free_form(self.run.clone(), message.into(), schema)
    }

    /// Sends the user to `url`, to do there what must not go through the client, such as entering a password. `Accept`
    /// means that the user agreed to go there, not that anything was done there.
    ///
    /// # Errors
    /// As `elicit`; the client must support URL mode.
    pub fn elicit_url(&self, message: impl Into<String>, url: &str) -> Asking<Elicited<()>> {
        elicit::url(self.run.clone(), message.into(), url)
    }

    /// Asks the client's model for a completion. The protocol has deprecated this (SEP-2577) and its types in rmcp,
    /// which are `CreateMessageRequestParams` and `CreateMessageResult`; any types of that form will do.
    ///
    /// # Errors
    /// As `elicit`; the client must support sampling.
    pub fn sample<R: serde::de::DeserializeOwned>(&self, params: &impl serde::Serialize) -> Asking<R> {
        elicit::sampling(self.run.clone(), params)
    }

    /// Asks the client for its roots. The protocol has deprecated this (SEP-2577) and its type in rmcp, which is
    /// `ListRootsResult`; any type of that form will do.
    ///
    /// # Errors
    /// As `elicit`; the client must support roots.
    pub fn roots<R: serde::de::DeserializeOwned>(&self) -> Asking<R> {
        elicit::roots(self.run.clone())
    }

    /// Whether the client can be asked this, as far as it declared. A question it cannot be asked is an error; this is
    /// for a function that would rather do something else. It depends on the request that triggered the run, which may
    /// be another one on a later run, so it is recorded.
    ///
    /// # Errors
    /// When it is polled outside the function's own future.
    pub fn can_ask(&self, kind: InputKind) -> impl Future<Output = Result<bool, ToolError>> + Send + use<> {
        journal::can_ask(self.run.clone(), kind)
    }

    /// The time, the same on every run.
    ///
    /// # Errors
    /// When it is polled outside the function's own future.
    pub fn now(&self) -> impl Future<Output = Result<SystemTime, ToolError>> + Send + use<> {
        journal::now(self.run.clone())
    }

    /// `N` random bytes from the system's generator, the same on every run.
    ///
    /// # Errors
    /// When the generator fails, or it is polled outside the function's own future.
    pub fn random<const N: usize>(&self) -> impl Future<Output = Result<[u8; N], ToolError>> + Send + use<N> {
        journal::random(self.run.clone())
    }

    /// Waits, by the server's clock, in whole milliseconds. On a later run only what is left is waited for: the instant
    /// at which the wait ends is recorded.
    ///
    /// In a task a wait of ten seconds or more needs no process, and may last for days. Where the function waits for
    /// nothing else, it is dropped, as at a question, and runs again from its first line when the time has come: on
    /// this node, or, if this node has died, on another (within `mcp.tasks.lease`, or at the next poll of the task). No
    /// node holds the task's lease meanwhile, so `on_crash` does not apply. Clients see it `working`, with the message
    /// of its last report. It can be cancelled, and its time to live goes on: a long sleep needs a longer `ttl`.
    ///
    /// A wait stays in the process while a step runs, and while the function also waits for something that the context
    /// does not know, such as a timer of tokio's, a channel, or the [cancellation token](Self::cancellation). A shorter
    /// wait stays in the process too, and so does every wait inside a call. While a question is open no wait begins,
    /// and none ends.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use mcp_tasks::prelude::*;
    ///
    /// /// Send a report every morning for a week.
    /// #[mcp_task(ttl = "P8D")]
    /// async fn weekly(ctx: ToolContext) -> Result<&'static str, ToolError> {
    ///     for day in 1..=7 {
    ///         ctx.step("send", || send(day)).await?;
    ///         ctx.progress(f64::from(day)).total(7.0).message("sent").send();
    ///         ctx.sleep(Duration::from_secs(24 * 60 * 60)).await?;
    ///     }
    ///     Ok("sent seven reports")
    /// }
    /// # async fn send(_: u32) -> Result<(), ToolError> { Ok(()) }
    /// ```
    ///
    /// # Errors
    /// When it is polled outside the function's own future.
    pub fn sleep(&self, duration: Duration) -> impl Future<Output = Result<(), ToolError>> + Send + use<> {
        journal::sleep(self.run.clone(), duration)
    }

    /// A key for another system that does a thing once per key: the same on every run of this task and for this `name`,
    /// and another for every other task. Inside a call it is the same over all the call's rounds.
    ///
    /// ```
    /// # async fn charge(key: &str) -> Result<(), std::io::Error> { Ok(()) }
    /// # async fn f(ctx: mcp_tasks::ToolContext) -> Result<(), mcp_tasks::ToolError> {
    /// let key = ctx.idempotency_key("charge");
    /// ctx.step("charge", || async move { charge(&key).await }).await?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn idempotency_key(&self, name: &str) -> String {
        let name = serde_json::Value::from(name);
        Fingerprint::of("idempotency-key", self.run.id.as_str(), Some(&name)).to_hex()
    }

    /// The point from which a call of a `#[mcp_task(defer)]` goes on as a task. Questions before it are rounds of the
    /// call itself, what follows is a task, and the answers and steps so far come along. It does nothing where there
    /// can be no task, and on every later run.
    ///
    /// # Errors
    /// When the attribute does not say `defer`, and when it is polled outside the function's own future.
    pub fn defer(&self) -> impl Future<Output = Result<(), ToolError>> + Send + use<> {
        journal::defer(self.run.clone())
    }

    /// Does a piece of work once and keeps its result: on a later run the result is returned without doing the work.
    ///
    /// The result, value or error, is stored before the function sees it, as JSON. The name goes into the ledger: it is
    /// how a replay recognises the step, so it must be the same on every run. Steps may run side by side (`join!`);
    /// those that do need names of their own, or a replay could not tell their results apart.
    ///
    /// The work itself makes no steps and asks no questions: such a call inside it gets an error. It may report
    /// progress.
    ///
    /// The work is done at least once: when the process dies after the work and before its result is stored, it is done
    /// again; otherwise once. Inside a call the results travel with its questions: in the sealed state that the client
    /// sends back, or in the memory of the call. A client that drops its state starts over.
    ///
    /// # Errors
    /// The work's own error, as a [`ToolError`]; the same on every later run. Also when the value has no JSON form, or
    /// a stored one does not fit `T` any more, and when it is polled outside the function's own future.
    ///
    /// # Cancel safety
    /// Dropping the future before it is done drops the work, and the next run does it again. The same holds for a step
    /// that was started and is not polled any more while the function waits for an answer.
    ///
    /// An async block that uses `?` does not say what its error is; end it with `Ok::<_, ToolError>(value)`.
    pub fn step<T, E, F, Fut>(&self, name: &str, work: F) -> Step<T, F, Fut>
    where
        T: serde::Serialize + serde::de::DeserializeOwned,
        E: Into<ToolError>,
        F: FnOnce() -> Fut,
        Fut: StepWork<T, E>,
    {
        Step::new(self.run.clone(), name, work)
    }

    /// As [`step`](Self::step), but work that fails is done again, as often and as patiently as `retry` says, before
    /// its error is kept and reaches the function.
    ///
    /// ```
    /// use mcp_tasks::{Retry, ToolContext, ToolError};
    ///
    /// async fn upload(ctx: &ToolContext, page: &str) -> Result<u64, ToolError> {
    ///     ctx.step_with_retry("upload", Retry::times(5), || put(page)).await
    /// }
    ///
    /// async fn put(page: &str) -> Result<u64, std::io::Error> {
    ///     Ok(page.len() as u64)
    /// }
    /// ```
    ///
    /// # Errors
    /// As `step`: the error of the last try.
    ///
    /// # Cancel safety
    /// As `step`.
    pub fn step_with_retry<T, E, F, Fut>(&self, name: &str, retry: Retry, work: F) -> Step<T, F, Fut>
    where
        T: serde::Serialize + serde::de::DeserializeOwned,
        E: Into<ToolError>,
        F: FnMut() -> Fut,
        Fut: StepWork<T, E>,
    {
        Step::retrying(self.run.clone(), name, retry, work)
    }

    /// Reports how far the work is: any number that grows. Add [`total`](Progress::total) and
    /// [`message`](Progress::message), then [`send`](Progress::send) it.
    ///
    /// A task shows it as its status message, `"<progress>/<total>: <message>"`; a synchronous call sends
    /// `notifications/progress` if the client asked for them. Reports that do not grow are dropped, and those that come
    /// faster than a store should be written are merged into the newest.
    ///
    /// ```
    /// # async fn f(ctx: mcp_tasks::ToolContext) {
    /// ctx.progress(3.0).total(10.0).message("encoding").send();
    /// # }
    /// ```
    #[must_use = "a report does nothing until it is sent"]
    pub fn progress(&self, progress: f64) -> Progress<'_> {
        Progress::new(&self.run, progress)
    }

    /// Progress by counting things: each [`advance`](Counter::advance) reports one more of `total`.
    #[must_use]
    pub fn count_to(&self, total: u64) -> Counter {
        Counter::new(self.run.clone(), total)
    }

    /// Progress by a value on its way to `total`, such as bytes.
    #[must_use]
    pub fn gauge_to(&self, total: f64) -> Gauge {
        Gauge::new(self.run.clone(), total)
    }

    /// Progress as a fraction between 0 and 1.
    #[must_use]
    pub fn fraction(&self) -> Fraction {
        Fraction::new(self.run.clone())
    }

    /// The token that fires when the run ends, however it ends: when the client cancels the task or goes away during a
    /// call, when the task expires or goes on elsewhere, when the run is parked at a question, and when the function
    /// returns. The function's own future is dropped at its next await by itself; the token is for work that a drop
    /// does not reach, such as `spawn_blocking`.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.run.shown_token
    }

    /// Lets the task live for at least `ttl` from now, in whole milliseconds, where it would have expired earlier.
    /// Clients see it in `ttlMs`. Inside a synchronous call, and for a task that never expires, it does nothing.
    ///
    /// # Errors
    /// When the store cannot be reached, or the task is no longer this run's.
    pub async fn extend_ttl(&self, ttl: Duration) -> Result<(), ToolError> {
        self.run.carrier.extend_ttl(ttl).await
    }
}
