//! What a run of a tool in a test came to.

use std::fmt;
use std::time::Duration;

use mcp_tasks_core::Ledger;
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::TestQuestion;

/// How a tool ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TestEnding {
    /// With a result, which may have `isError` set: a task is `completed` with it.
    Result(CallToolResult),
    /// With a JSON-RPC error: a task is `failed` with it.
    Error(ErrorData),
}

impl fmt::Display for TestEnding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Result(result) if result.is_error == Some(true) => write!(f, "an error result: {}", text_of(result)),
            Self::Result(result) => write!(f, "a result: {}", text_of(result)),
            Self::Error(error) => write!(f, "the JSON-RPC error {}: {}", error.code.0, error.message),
        }
    }
}

fn text_of(result: &CallToolResult) -> String {
    let texts: Vec<&str> = result
        .content
        .iter()
        .filter_map(ContentBlock::as_text)
        .map(|text| text.text.as_str())
        .collect();
    texts.join("\n")
}

/// One step of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestStep {
    pub(super) name: String,
    pub(super) calls: u32,
    pub(super) recorded: bool,
}

impl TestStep {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How often its work was called: once, unless it has a [`Retry`](crate::Retry), or lost a race, and was begun
    /// again on a later run.
    #[must_use]
    pub const fn calls(&self) -> u32 {
        self.calls
    }

    /// Whether its result was kept; not if it lost a race.
    #[must_use]
    pub const fn is_recorded(&self) -> bool {
        self.recorded
    }
}

/// What a run of a tool in a test came to, and what happened on the way.
#[derive(Debug, Clone)]
pub struct TestOutcome {
    pub(super) ending: TestEnding,
    pub(super) is_task: bool,
    pub(super) questions: Vec<TestQuestion>,
    pub(super) progress: Vec<String>,
    pub(super) steps: Vec<TestStep>,
    pub(super) runs: u32,
    pub(super) elapsed: Duration,
    pub(super) ttl: Option<Duration>,
    pub(super) ledgers: Vec<Ledger>,
}

impl TestOutcome {
    /// How the tool ended.
    #[must_use]
    pub const fn ending(&self) -> &TestEnding {
        &self.ending
    }

    /// The result of a tool that did what it was to do.
    ///
    /// # Panics
    /// When it ended with an error of either kind; the words of the panic are the error's.
    #[track_caller]
    pub fn result(&self) -> &CallToolResult {
        match &self.ending {
            TestEnding::Result(result) if result.is_error != Some(true) => result,
            ending => panic!("expected a result; the tool ended with {ending}"),
        }
    }

    /// The result's structured content, decoded. Text that is all of a result is there too, as a string.
    ///
    /// # Panics
    /// When the tool ended with an error, or the content does not decode.
    #[track_caller]
    #[must_use]
    pub fn value<T: DeserializeOwned>(&self) -> T {
        let result = self.result();
        let value = match &result.structured_content {
            Some(value) => value.clone(),
            None => Value::String(text_of(result)),
        };
        match serde_json::from_value(value) {
            Ok(value) => value,
            Err(error) => panic!(
                "the tool's result does not decode: {error}; it ended with {}",
                self.ending
            ),
        }
    }

    /// The words of the result or of the error, whichever there is; several blocks of text are joined by line ends.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.ending {
            TestEnding::Result(result) => text_of(result),
            TestEnding::Error(error) => error.message.to_string(),
        }
    }

    /// The result with `isError` of a tool that failed for its client to read.
    ///
    /// # Panics
    /// When it ended otherwise; the words say how.
    #[track_caller]
    pub fn error_result(&self) -> &CallToolResult {
        match &self.ending {
            TestEnding::Result(result) if result.is_error == Some(true) => result,
            ending => panic!("expected an error result; the tool ended with {ending}"),
        }
    }

    /// The JSON-RPC error of a tool that ended with one.
    ///
    /// # Panics
    /// When it ended with a result, an error result included; the words say which.
    #[track_caller]
    pub fn error(&self) -> &ErrorData {
        match &self.ending {
            TestEnding::Error(error) => error,
            ending => panic!("expected a JSON-RPC error; the tool ended with {ending}"),
        }
    }

    /// Whether it ended as a task: from the start, or since [`defer`](crate::ToolContext::defer).
    #[must_use]
    pub const fn is_task(&self) -> bool {
        self.is_task
    }

    /// What was asked, in the order in which a client would see it. A question that was asked again because an answer
    /// did not fit is there each time.
    #[must_use]
    pub fn questions(&self) -> &[TestQuestion] {
        &self.questions
    }

    /// The reports of progress that count, as a task's status messages: `"3/10: encoding"`. Those that do not grow, a
    /// replay's for example, are not there.
    #[must_use]
    pub fn progress(&self) -> &[String] {
        &self.progress
    }

    /// The steps whose work was begun, in the order in which the tool made them.
    #[must_use]
    pub fn steps(&self) -> &[TestStep] {
        &self.steps
    }

    /// The names of the [steps](Self::steps).
    pub fn step_names(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().map(TestStep::name)
    }

    /// How often the body was run, the last replay of [`replaying`](super::TestTool::replaying) included.
    #[must_use]
    pub const fn runs(&self) -> u32 {
        self.runs
    }

    /// How far the clock went: what the tool slept.
    #[must_use]
    pub const fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// The time to live of the task at its end, from its creation; `None` inside a call, and for one that never expires.
    #[must_use]
    pub const fn ttl(&self) -> Option<Duration> {
        self.ttl
    }

    /// The ledger after each write, the oldest first; the last one holds all that the tool did. See
    /// [`TestTool::from_ledger`](super::TestTool::from_ledger).
    #[must_use]
    pub fn ledgers(&self) -> &[Ledger] {
        &self.ledgers
    }
}
