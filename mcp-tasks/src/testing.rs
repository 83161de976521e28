//! Tests of one tool, without a server, a client or a store.
//!
//! [`TestTool`] runs the function behind an attribute the way a server does: the same checks of guard and arguments,
//! the same driver of bodies, the same ledger. What the world outside would give comes from the test: arguments, states,
//! a caller, what the client can be asked, what its user answers, and the time. The feature `testing` has it, for
//! dev-dependencies:
//!
//! ```toml
//! [dev-dependencies]
//! mcp-tasks = { version = "0.1", features = ["testing"] }
//! ```
//!
//! # A first test
//!
//! ```
//! use mcp_tasks::prelude::*;
//! use mcp_tasks::testing::TestTool;
//! use serde_json::json;
//!
//! #[derive(Deserialize, JsonSchema, ElicitForm)]
//! struct Confirm {
//!     publish: bool,
//! }
//!
//! /// Render a report and, if the user agrees, publish it.
//! #[mcp_task]
//! async fn report(ctx: ToolContext, quarter: u8) -> Result<String, ToolError> {
//!     let pages = ctx.step("render", || render(quarter)).await?;
//!     let question = format!("{pages} pages. Publish?");
//!     Ok(match ctx.elicit::<Confirm>(question).key("confirm").await? {
//!         Elicited::Accept(Confirm { publish: true }) => "published".to_owned(),
//!         _ => "kept as a draft".to_owned(),
//!     })
//! }
//!
//! async fn render(quarter: u8) -> Result<u32, std::io::Error> {
//!     Ok(u32::from(quarter) * 12)
//! }
//!
//! # let the_tests = async {
//! // In a #[tokio::test]:
//! let test = TestTool::new::<report>().arguments(json!({"quarter": 3})).replaying();
//!
//! let outcome = test.clone().answer("confirm", json!({"publish": true})).run().await;
//! assert_eq!(outcome.text(), "published");
//! assert_eq!(outcome.questions()[0].message(), "36 pages. Publish?");
//! assert!(outcome.step_names().eq(["render"]));
//!
//! let outcome = test.decline("confirm").run().await;
//! assert_eq!(outcome.text(), "kept as a draft");
//! # };
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(the_tests);
//! ```
//!
//! # What fails a test
//!
//! A tool that returns an error has done what tools may do: [`TestOutcome`] holds it. [`TestTool::run`] panics, with words
//! that say what to do, where the tool or the script is wrong ([`TestFailure`]): a question without an answer in the
//! test, an answer in the test without a question, a body that panics, hangs, sleeps past the end of its task, or does not
//! repeat itself.
//!
//! # Replaying
//!
//! A task's body runs again from its first line after every answer, and after a crash from wherever it was. Whether it
//! can is not seen in a run that goes straight through. [`replaying`](TestTool::replaying) stops the body after every
//! entry in its ledger and begins anew, so this one, which asks for the time behind the context's back, is found out
//! although it asks its user nothing:
//!
//! ```
//! use std::time::Instant;
//!
//! use mcp_tasks::prelude::*;
//! use mcp_tasks::testing::{TestFailure, TestTool};
//!
//! #[mcp_task]
//! async fn measure(ctx: ToolContext) -> Result<(), ToolError> {
//!     let begun = Instant::now();
//!     ctx.step("first half", || async { Ok::<_, ToolError>(()) }).await?;
//!     ctx.step(&format!("second half, after {:?}", begun.elapsed()), || async { Ok::<_, ToolError>(()) }).await
//! }
//!
//! # let the_test = async {
//! let failure = TestTool::new::<measure>().replaying().try_run().await.unwrap_err();
//! assert!(matches!(failure, TestFailure::Mismatch { .. }));
//! assert!(failure.to_string().contains("Usual causes: a clock"));
//! # };
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(the_test);
//! ```
//!
//! After its end the body is replayed once more with all it did recorded, and has to end alike. That fails for work with
//! effects, or with results that differ, outside of steps; and for a race between a step and something that is recorded
//! nowhere, such as tokio's timers. A limit in time is [`ctx.sleep`](crate::ToolContext::sleep) beside the step:
//!
//! ```
//! use std::time::Duration;
//!
//! use mcp_tasks::prelude::*;
//! use mcp_tasks::testing::TestTool;
//!
//! /// Look a price up, and guess it if that takes an hour.
//! #[mcp_task]
//! async fn price(ctx: ToolContext) -> Result<u32, ToolError> {
//!     tokio::select! {
//!         biased;
//!         price = ctx.step("look up", look_up) => price,
//!         slept = ctx.sleep(Duration::from_secs(3600)) => slept.map(|()| 7),
//!     }
//! }
//!
//! async fn look_up() -> Result<u32, ToolError> {
//!     std::future::pending().await
//! }
//!
//! # let the_test = async {
//! let outcome = TestTool::new::<price>().replaying().run().await;
//! assert_eq!(outcome.value::<u32>(), 7);
//! assert_eq!(outcome.elapsed(), Duration::from_secs(3600));
//! # };
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(the_test);
//! ```
//!
//! # Time
//!
//! The tool's time is a [`TestClock`]: it stands still, and jumps to the end of a sleep (or of the delay before a step is
//! tried again) when nothing else is left to happen. Work that takes its time in the real world is waited for, and no sleep
//! overtakes it. So a test takes as long as its work, and shows the same times on every day, under every tokio runtime,
//! stopped ones (`start_paused`) included.
//!
//! # Tasks that are parked
//!
//! [`TestOutcome::ledgers`] holds what a store would have held, write by write, and [`TestTool::from_ledger`] begins with
//! one of these. They are stored data, readable by every later release: a ledger kept as a file beside the tests tells
//! whether a changed tool still resumes what is parked.
//!
//! ```
//! use mcp_tasks::prelude::*;
//! use mcp_tasks::testing::{Ledger, TestTool};
//!
//! /// Greet a person, in two steps.
//! #[mcp_task]
//! async fn greet(ctx: ToolContext, name: String) -> Result<String, ToolError> {
//!     let begin = ctx.step("begin", || async { Ok::<_, ToolError>("Hello".to_owned()) }).await?;
//!     ctx.step("end", || async { Ok::<_, ToolError>(format!("{begin}, {name}!")) }).await
//! }
//!
//! # let the_test = async {
//! let test = TestTool::new::<greet>().argument("name", "you");
//! let first = test.run().await.ledgers()[0].clone();
//! let stored = serde_json::to_string(&first).unwrap();
//!
//! let resumed = test.from_ledger(serde_json::from_str::<Ledger>(&stored).unwrap()).run().await;
//! assert_eq!(resumed.text(), "Hello, you!");
//! assert!(resumed.step_names().eq(["end"]));
//! # };
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(the_test);
//! ```
//!
//! # What it does not do
//!
//! A whole server, with its store, its wire and several tasks side by side, is tested with a
//! [`TaskRuntime`](crate::TaskRuntime) in memory, to which a `TestClock` can be given. Cancellation is tested there too.

use mcp_tasks_core::Json;
use serde_json::Value;

mod body_run;
mod clock;
mod failure;
mod outcome;
mod recorder;
mod script;
mod test_run;
mod tool;

pub use mcp_tasks_core::{Divergence, Entry, EntryKind, Fault, Ledger, Mismatch};

pub use crate::run::clock::TokioClock;
pub use clock::TestClock;
pub use failure::TestFailure;
pub use outcome::{TestEnding, TestOutcome, TestStep};
pub use script::{TestAnswer, TestQuestion};
pub use tool::TestTool;

/// A `Value` always has a JSON form.
fn json_of(value: &Value) -> Json {
    Json::of(value).unwrap_or_else(|_| Json::from(serde_json::value::RawValue::NULL.to_owned()))
}
