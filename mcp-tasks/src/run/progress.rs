//! A report of how far the work is, on its way.

use mcp_tasks_core::Report;

/// One report on its way.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProgressUpdate {
    progress: f64,
    pub(crate) total: Option<f64>,
    pub(crate) message: Option<String>,
}

impl ProgressUpdate {
    pub(crate) const fn new(progress: f64) -> Self {
        Self {
            progress,
            total: None,
            message: None,
        }
    }

    pub(crate) const fn progress(&self) -> f64 {
        self.progress
    }

    /// The report as a task's status message: `"<progress>/<total>: <message>"`, without what it lacks.
    pub(crate) fn to_report(&self) -> Report {
        let mut text = self.progress.to_string();
        if let Some(total) = self.total {
            text.push('/');
            text.push_str(&total.to_string());
        }
        if let Some(message) = &self.message {
            text.push_str(": ");
            text.push_str(message);
        }
        Report::new(self.progress, text.into())
    }
}
