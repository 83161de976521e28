//! A tool and what it runs with in a test.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use mcp_tasks_core::Ledger;
use serde::Serialize;
use serde_json::{Map, Value};

use super::script::{Script, to_value};
use super::test_run::TestRun;
use super::{TestAnswer, TestClock, TestFailure, TestOutcome, TestQuestion};
use crate::Caller;
use crate::config::{Config, ConfigBuilder};
use crate::tool::state::StateMap;
use crate::tool::{ToolDefinition, ToolDescriptor};

/// One tool, to be run in a test; see [the module](super).
///
/// Without further words it runs as a client that can do everything would run it: an `#[mcp_task]` as a task, asked by
/// an anonymous caller who answers nothing, with an empty configuration and, in each run, a clock of its own. Cloning it
/// makes another test of the same kind, with the same states.
#[derive(Clone)]
#[must_use = "a tool does nothing until it is run"]
pub struct TestTool {
    pub(super) descriptor: ToolDescriptor,
    pub(super) arguments: Map<String, Value>,
    pub(super) states: StateMap,
    pub(super) caller: Caller,
    pub(super) config: ConfigBuilder,
    pub(super) capabilities: Value,
    pub(super) later_capabilities: Option<Value>,
    pub(super) clock: Option<TestClock>,
    pub(super) script: Script,
    pub(super) declares_tasks: bool,
    pub(super) replaying: bool,
    pub(super) ledger: Ledger,
}

impl fmt::Debug for TestTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestTool")
            .field("name", &self.descriptor.name)
            .field("arguments", &self.arguments)
            .field("clock", &self.clock)
            .field("script", &self.script)
            .finish_non_exhaustive()
    }
}

impl TestTool {
    /// The tool of this function: `TestTool::new::<encode>()` for `#[mcp_task] async fn encode(..)`.
    pub fn new<T: ToolDefinition>() -> Self {
        let none: [(&str, &str); 0] = [];
        let everything = r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}"#;
        Self {
            descriptor: T::TOOL,
            arguments: Map::new(),
            states: StateMap::default(),
            caller: Caller::anonymous(),
            config: Config::builder().environment(none).without_file(),
            capabilities: serde_json::from_str(everything).unwrap_or_default(),
            later_capabilities: None,
            clock: None,
            script: Script::default(),
            declares_tasks: true,
            replaying: false,
            ledger: Ledger::default(),
        }
    }

    /// The arguments, all of them: `json!({"uri": "file:///a"})`, or a value that is written as a JSON object. They are
    /// checked as any call's are.
    ///
    /// # Panics
    /// When they are no JSON object, which no client can send.
    #[track_caller]
    pub fn arguments(mut self, arguments: impl Serialize) -> Self {
        match to_value(arguments) {
            Value::Object(arguments) => self.arguments = arguments,
            other => panic!("the arguments of a tool are a JSON object, and these are {other}"),
        }
        self
    }

    /// One more argument.
    ///
    /// # Panics
    /// When its value has no JSON form.
    #[track_caller]
    pub fn argument(mut self, name: impl Into<String>, value: impl Serialize) -> Self {
        self.arguments.insert(name.into(), to_value(value));
        self
    }

    /// What the tool takes as `State<T>`; of two of one type the later one counts.
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.states.insert(value);
        self
    }

    /// As [`state`](Self::state), with a value that the test reads afterwards.
    pub fn shared_state<T: Send + Sync + 'static>(mut self, value: Arc<T>) -> Self {
        self.states.insert_shared(value);
        self
    }

    /// The caller; an anonymous one unless set. The tool's guard is asked.
    pub fn caller(mut self, caller: Caller) -> Self {
        self.caller = caller;
        self
    }

    /// A value for the placeholders in the tool's attribute. The environment and files are not read.
    pub fn config(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.config = self.config.set(key, value);
        self
    }

    /// What the client declares that it can be asked, as `ClientCapabilities` on the wire: `json!({})` for a client that
    /// can be asked nothing. Whether it knows tasks is set by [`as_call`](Self::as_call).
    ///
    /// # Panics
    /// When it has no JSON form.
    #[track_caller]
    pub fn capabilities(mut self, declared: impl Serialize) -> Self {
        self.capabilities = to_value(declared);
        self
    }

    /// What the client declares with its answers, where that is something else than with its call: the questions that
    /// come after are gated by it.
    ///
    /// # Panics
    /// When it has no JSON form.
    #[track_caller]
    pub fn later_capabilities(mut self, declared: impl Serialize) -> Self {
        self.later_capabilities = Some(to_value(declared));
        self
    }

    /// The clock, in place of one that begins at the same instant in every run.
    pub fn clock(mut self, clock: &TestClock) -> Self {
        self.clock = Some(clock.clone());
        self
    }

    /// Runs it inside the call, as for a client that does not declare the Tasks extension. An `#[mcp_tool]` always runs
    /// so; an `#[mcp_task(required)]` is refused, with `-32021`.
    pub const fn as_call(mut self) -> Self {
        self.declares_tasks = false;
        self
    }

    /// Runs it as for a client that declares the Tasks extension, which is how it runs anyway: as a task, with `defer`
    /// inside the call up to [`ctx.defer()`](crate::ToolContext::defer). A `grace` is not waited for.
    pub const fn as_task(mut self) -> Self {
        self.declares_tasks = true;
        self
    }

    /// Accepts the question with this key, with this content of its form. Questions without a key of their own have
    /// `elicit-<n>`, where `n` is how many calls the tool made on its context before. Of several answers to one key the
    /// second is for the second asking, when the first does not fit the form.
    ///
    /// # Panics
    /// When the content has no JSON form.
    #[track_caller]
    pub fn answer(self, key: impl Into<String>, content: impl Serialize) -> Self {
        self.reply(key, TestAnswer::accept(content))
    }

    /// Accepts the next question that has no answer by its key. Questions that are asked together come in the order in
    /// which the tool made them.
    ///
    /// # Panics
    /// When the content has no JSON form.
    #[track_caller]
    pub fn answer_next(self, content: impl Serialize) -> Self {
        self.reply_next(TestAnswer::accept(content))
    }

    /// Says no to the question with this key.
    pub fn decline(self, key: impl Into<String>) -> Self {
        self.reply(key, TestAnswer::decline())
    }

    /// Closes the question with this key.
    pub fn cancel(self, key: impl Into<String>) -> Self {
        self.reply(key, TestAnswer::cancel())
    }

    /// Does this with the question that has this key.
    pub fn reply(mut self, key: impl Into<String>, answer: TestAnswer) -> Self {
        self.script.add(key.into(), answer);
        self
    }

    /// Does this with the next question that has no answer by its key.
    pub fn reply_next(mut self, answer: TestAnswer) -> Self {
        self.script.add_next(answer);
        self
    }

    /// Answers what nothing else answers; `None` is no answer, which fails the test. It may be asked for nothing.
    pub fn reply_with(mut self, answer: impl Fn(&TestQuestion) -> Option<TestAnswer> + Send + Sync + 'static) -> Self {
        self.script.set_fallback(Arc::new(answer));
        self
    }

    /// Replays the body from every place in its ledger: after each entry (a step's result, an answer, a reading of the
    /// clock, and so on) it is dropped and run again from the top, against the ledger as a store would have it. When it
    /// has ended it is replayed once more, and has to end alike.
    ///
    /// That is what happens to a task whose process dies at the worst of times, and it shows at once what a tool with one
    /// question shows only to its users: a body that does not [repeat itself](crate::ToolContext#what-runs-again).
    ///
    /// Steps that run side by side are waited for before the body is dropped, so the work of each is done once.
    pub const fn replaying(mut self) -> Self {
        self.replaying = true;
        self
    }

    /// Starts where `ledger` ends, as another process would with the record of a task: one from
    /// [`TestOutcome::ledgers`], or one that was kept in a file to see that a changed tool still resumes what an earlier
    /// one began.
    pub fn from_ledger(mut self, ledger: Ledger) -> Self {
        self.ledger = ledger;
        self
    }

    /// Runs the tool to its end.
    ///
    /// # Panics
    /// With the words of the [`TestFailure`], where [`try_run`](Self::try_run) returns it.
    #[track_caller]
    pub fn run(&self) -> impl Future<Output = TestOutcome> + Send + '_ {
        let at = Location::caller();
        async move {
            match self.try_run().await {
                Ok(outcome) => outcome,
                Err(failure) => panic!("test of the tool `{}` at {at}: {failure}", self.descriptor.name),
            }
        }
    }

    /// Runs the tool to its end, for a test of how it fails.
    ///
    /// # Errors
    /// [`TestFailure`] when there is no outcome, as tool or script are wrong. A tool that ends with an error of its own has
    /// an outcome.
    pub async fn try_run(&self) -> Result<TestOutcome, TestFailure> {
        TestRun::new(self)?.run().await
    }
}
