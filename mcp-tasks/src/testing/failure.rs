//! Why a test of a tool came to no outcome.

use std::fmt;

use mcp_tasks_core::{Fault, Mismatch, Timestamp};

use super::{TestEnding, TestQuestion};
use crate::StartError;

/// Why a run of a tool in a test is no outcome but a failure of the test: the tool or the script is wrong.
///
/// Its words are for the author of the test. What the tool itself returns, errors included, is a
/// [`TestOutcome`](super::TestOutcome).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestFailure {
    /// A server with this tool would not start: a state is missing, or a placeholder has no value.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The test has no answer to a question.
    #[error(
        "the tool asks {question} and the test has no answer; give it one, with `.answer({:?}, ..)` for example{}",
        question.key(),
        UnusedAnswersText(unused)
    )]
    #[non_exhaustive]
    Unanswered {
        /// What the tool asks.
        question: Box<TestQuestion>,
        /// Answers of the test to questions that were not asked by then, in words.
        unused: Vec<String>,
    },
    /// The scripted answer is none for a question of this kind, and a client that sent it would be asked still.
    #[error("the test's answer to {question} is no answer to {}", question.kind().method())]
    #[non_exhaustive]
    NoAnswer {
        /// What the tool asks.
        question: Box<TestQuestion>,
    },
    /// The test has answers to questions that were not asked.
    #[error(
        "the tool ended ({ending}) without asking for all of the test's answers{}",
        UnusedAnswersText(unused)
    )]
    #[non_exhaustive]
    UnusedAnswers {
        /// Which, in words.
        unused: Vec<String>,
        /// How the tool ended.
        ending: Box<TestEnding>,
    },
    /// The body does not repeat itself: run again, it left the path that its ledger holds.
    #[error("on run {run} of its body{}: {mismatch}", EndedWith(ending.as_deref()))]
    #[non_exhaustive]
    Mismatch {
        /// Where and how.
        mismatch: Box<Mismatch>,
        /// Which run of the body it was, counted from 1.
        run: u32,
        /// The error that the body ended with, if that is how it left the path. A task would end with it.
        ending: Option<Box<TestEnding>>,
    },
    /// Replayed once more after its end, with everything it did in the ledger, the body ended in another way.
    #[error(
        "the tool does not repeat itself: it ended with {first}, and when it was run again with everything it did \
         recorded, with {again}. What it does between its calls on the context, and after the last, must come to the same \
         every time"
    )]
    #[non_exhaustive]
    EndsDifferently {
        /// How it ended.
        first: Box<TestEnding>,
        /// How it ended when it was replayed.
        again: String,
    },
    /// The work of a step was done again although its result was kept.
    #[error(
        "the step {name:?} was done again although its result was kept; this is a fault in mcp-tasks, please report it"
    )]
    #[non_exhaustive]
    StepRepeated {
        /// The step's name.
        name: String,
    },
    /// A mistake in the body that would fail its task, such as a key used twice.
    #[error("the tool's body is wrong: {0}")]
    Fault(Fault),
    /// The body panicked.
    #[error("the tool panicked: {0}")]
    Panicked(String),
    /// The body waits, and nothing is left that could wake it.
    #[error(
        "the tool hangs: it waits for something that nothing can bring about any more (a channel whose sender waits too, \
         a future that is never woken)"
    )]
    Hangs,
    /// The task would have expired while the tool slept.
    #[error(
        "the task expires while the tool sleeps: the sleep ends at {wake} and the task at {deadline}; give it a longer \
         `ttl`, or call `extend_ttl` first"
    )]
    #[non_exhaustive]
    Expired {
        /// When the tool would wake.
        wake: Timestamp,
        /// The last instant of the task.
        deadline: Timestamp,
    },
}

/// How a run ended, in the middle of a sentence.
struct EndedWith<'a>(Option<&'a TestEnding>);

impl fmt::Display for EndedWith<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(ending) => write!(f, ", which ended with {ending}"),
            None => Ok(()),
        }
    }
}

/// The end of a sentence about answers that were not used.
struct UnusedAnswersText<'a>(&'a [String]);

impl fmt::Display for UnusedAnswersText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => Ok(()),
            [one] => write!(f, ". Not used so far: {one}"),
            many => write!(f, ". Not used so far: {}", many.join(", ")),
        }
    }
}
