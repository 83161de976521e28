//! Reports of how far the work is.

use std::sync::Arc;

use crate::run::Run;
use crate::run::progress::ProgressUpdate;

/// A report that is being put together; see [`ToolContext::progress`](crate::ToolContext::progress).
#[derive(Debug)]
#[must_use = "a report does nothing until it is sent"]
pub struct Progress<'a> {
    run: &'a Run,
    update: ProgressUpdate,
}

impl<'a> Progress<'a> {
    pub(super) const fn new(run: &'a Run, progress: f64) -> Self {
        Self {
            run,
            update: ProgressUpdate::new(progress),
        }
    }

    /// What the progress is on its way to.
    pub fn total(mut self, total: f64) -> Self {
        self.update.total = total.is_finite().then_some(total);
        self
    }

    /// What is being done, for people.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.update.message = Some(message.into());
        self
    }

    /// Sends the report; it does not wait, and may be called from anywhere, blocking threads included. A report that is
    /// not above the last one, or not finite, is dropped.
    pub fn send(self) {
        self.run.report(&self.update);
    }
}

/// Counts things done; see [`ToolContext::count_to`](crate::ToolContext::count_to).
///
/// ```
/// # async fn f(ctx: mcp_tasks::ToolContext, files: Vec<String>) {
/// let mut done = ctx.count_to(files.len() as u64);
/// for file in files {
///     // ...
///     done.advance(1, format!("hashed {file}"));
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Counter {
    run: Arc<Run>,
    count: u64,
    total: u64,
}

impl Counter {
    pub(super) const fn new(run: Arc<Run>, total: u64) -> Self {
        Self { run, count: 0, total }
    }

    /// Reports `by` more things done. Beyond 2^53 things, where progress on the wire cannot tell them apart, reports that
    /// do not grow are dropped.
    pub fn advance(&mut self, by: u64, message: impl Into<String>) {
        self.count = self.count.saturating_add(by);
        Progress::new(&self.run, self.count as f64)
            .total(self.total as f64)
            .message(message)
            .send();
    }

    /// How many are done.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }
}

/// Follows a value; see [`ToolContext::gauge_to`](crate::ToolContext::gauge_to).
#[derive(Debug)]
pub struct Gauge {
    run: Arc<Run>,
    total: f64,
}

impl Gauge {
    pub(super) const fn new(run: Arc<Run>, total: f64) -> Self {
        Self { run, total }
    }

    /// Reports the value as it is now.
    pub fn set(&self, value: f64, message: impl Into<String>) {
        Progress::new(&self.run, value)
            .total(self.total)
            .message(message)
            .send();
    }
}

/// Follows a fraction; see [`ToolContext::fraction`](crate::ToolContext::fraction).
#[derive(Debug)]
pub struct Fraction {
    run: Arc<Run>,
}

impl Fraction {
    pub(super) const fn new(run: Arc<Run>) -> Self {
        Self { run }
    }

    /// Reports the fraction done, kept between 0 and 1.
    pub fn set(&self, fraction: f64, message: impl Into<String>) {
        Progress::new(&self.run, fraction.clamp(0.0, 1.0))
            .total(1.0)
            .message(message)
            .send();
    }
}
