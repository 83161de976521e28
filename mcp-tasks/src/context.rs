//! What a tool's function can ask of the run it is in.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcp_tasks_core::TaskId;
use tokio_util::sync::CancellationToken;

use crate::engine::{Carrier, Run};
use crate::{ElicitForm, ToolError};

mod elicit;
mod progress;
mod step;

pub use elicit::{Elicit, ElicitError, Elicited};
pub use progress::{Counter, Fraction, Gauge, Progress};

pub(crate) use progress::ProgressUpdate;

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
/// calls on the context, a function must do the same every time: whatever takes long, costs money, or gives another
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

impl ToolContext {
    pub(crate) const fn new(run: Arc<Run>) -> Self {
        Self { run }
    }

    /// The id of the task this run belongs to; `None` inside a synchronous call. For logs and for correlation with other
    /// systems: a function should not do other work because of it.
    #[must_use]
    pub fn task_id(&self) -> Option<&TaskId> {
        match &self.run.carrier {
            Carrier::Task { id, .. } => Some(id),
            Carrier::Synchronous { .. } => None,
        }
    }

    /// Asks the user to fill in the form `T`, with `message` as the words around it.
    ///
    /// The task becomes `input_required`, and the function goes on with the answer when it has come, which may be hours
    /// and a restart later. Questions that are waited for at the same time (`join!`) are published together, each under
    /// a key of its own: [`Elicit::key`], or `elicit-<n>`. Nothing the function wraps around the wait (a time-out,
    /// `unwrap_or_default`, `select!`) keeps the question from being asked.
    ///
    /// The answer was checked against the form before the function sees it. One that does not fit is asked for again, up
    /// to three times in all.
    ///
    /// # Errors
    /// [`ElicitError`] when the client cannot be asked, or answered three times with what does not fit. With `?` in a
    /// function that returns [`ToolError`] that becomes the error the protocol has for it.
    ///
    /// # Cancel safety
    /// A question that was never polled asks nothing. One that was is asked, even if its future is dropped at once.
    pub fn elicit<T: ElicitForm>(&self, message: impl Into<String>) -> Elicit<T> {
        Elicit::new(self.run.clone(), message.into())
    }

    /// Does a piece of work once and keeps its result: on a later run the result is returned without doing the work.
    ///
    /// The result, value or error, is stored before the function sees it, as JSON. The name goes into the ledger: it is
    /// how a replay recognises the step, so it must be the same on every run. Steps may run side by side (`join!`).
    ///
    /// The work itself makes no steps and asks no questions: such a call inside it gets an error. It may report progress.
    ///
    /// The work is done at least once: when the process dies after the work and before its result is stored, it is done
    /// again; otherwise once. Inside a synchronous call nothing is stored and the work is simply done.
    ///
    /// # Errors
    /// The work's own error, as a [`ToolError`]; the same on every later run. Also when the value has no JSON form, or a
    /// stored one does not fit `T` any more, and when it is polled outside the function's own future.
    ///
    /// # Cancel safety
    /// Dropping the future before it is done drops the work; it is done again when the function comes by again.
    pub fn step<T, E, F, Fut>(
        &self,
        name: &str,
        work: F,
    ) -> impl Future<Output = Result<T, ToolError>> + Send + use<T, E, F, Fut>
    where
        T: serde::Serialize + serde::de::DeserializeOwned + Send,
        E: Into<ToolError> + Send,
        F: FnOnce() -> Fut + Send,
        Fut: Future<Output = Result<T, E>> + Send,
    {
        step::step(self.run.clone(), name.to_owned(), work)
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

    /// The token that fires when the client cancels the task, or goes away during a synchronous call. The function's own
    /// future is dropped at its next await by itself; the token is for work that a drop does not reach, such as
    /// `spawn_blocking`.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.run.token
    }

    /// Lets the task live for at least `ttl` from now, in whole milliseconds, where it would have expired earlier. Clients
    /// see it in `ttlMs`. Inside a synchronous call, and for a task that never expires, it does nothing.
    ///
    /// # Errors
    /// When the store cannot be reached, or the task is no longer this run's.
    pub async fn extend_ttl(&self, ttl: Duration) -> Result<(), ToolError> {
        match &self.run.carrier {
            Carrier::Task { engine, id, epoch } => engine.extend_ttl(id, *epoch, ttl).await,
            Carrier::Synchronous { .. } => Ok(()),
        }
    }
}
