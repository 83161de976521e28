//! Durable, long-running MCP tools on rmcp: annotate an async function, get a task.
//!
//! Applications depend on this crate. Authors of a store depend on `mcp-tasks-core`; no crate but this one on
//! `mcp-tasks-macros`.
//!
//! # A first tool
//!
//! ```no_run
//! use mcp_tasks::prelude::*;
//!
//! /// Count the lines of a file.
//! #[mcp_task]
//! async fn count_lines(
//!     /// Where the file is
//!     path: String,
//! ) -> Result<String, ToolError> {
//!     let text = std::fs::read_to_string(path)?;
//!     Ok(format!("{} lines", text.lines().count()))
//! }
//!
//! #[tokio::main]
//! async fn main() -> mcp_tasks::Result<()> {
//!     Server::from_env()?.serve().await
//! }
//! ```
//!
//! [`mcp_task`] makes the function a tool that runs as a task where the client allows it, [`mcp_tool`] one that always
//! runs inside the call. The function stays a function. Tools are collected at link time; a library of tools that
//! nothing in the program refers to is dropped by the linker, so name it: `use my_tools as _;`.
//! [`expect_tools`](host::TaskRuntimeBuilder::expect_tools) makes sure of them, and
//! [`register`](host::TaskRuntimeBuilder::register) does without the collection.
//!
//! # Running it
//!
//! [`Server`] serves MCP at `http://127.0.0.1:8080/mcp`, or on stdio when `MCP_TASKS_TRANSPORT` is `stdio`, until
//! SIGINT or SIGTERM. Both keep stdout free; log to stderr.
//!
//! # What the client sees
//!
//! | tool | the request declares the extension | it runs |
//! |---|---|---|
//! | `#[mcp_tool]` | either | inside the call |
//! | `#[mcp_task]` | yes | as a task |
//! | `#[mcp_task]` | no | inside the call |
//! | `#[mcp_task(required)]` | yes | as a task |
//! | `#[mcp_task(required)]` | no | not at all: `-32021` |
//!
//! The answer to a call that became a task has its id. The client polls it with `tasks/get`, answers its questions with
//! `tasks/update` and cancels it with `tasks/cancel` (Tasks extension, SEP-2663). The task is kept for its `ttl`,
//! whether it has ended or not. Declared means that the `_meta` of this very request says so.
//!
//! Between the two there are `grace`, for work that is often done at once, and `defer`, for a function that says itself
//! from where it is a task; see [`mcp_task`].
//!
//! # Asking the user
//!
//! A parameter of the type [`ToolContext`] is filled in by the server. Through it a function asks:
//!
//! ```
//! use mcp_tasks::prelude::*;
//!
//! #[derive(Deserialize, JsonSchema, ElicitForm)]
//! struct Confirm {
//!     /// Delete it for good
//!     delete: bool,
//!     reason: Option<String>,
//! }
//!
//! /// Delete a branch, if the user agrees.
//! #[mcp_task]
//! async fn delete_branch(ctx: ToolContext, name: String) -> Result<String, ToolError> {
//!     match ctx.elicit::<Confirm>(format!("Delete {name}?")).await? {
//!         Elicited::Accept(Confirm { delete: true, .. }) => Ok(format!("deleted {name}")),
//!         _ => Ok(format!("kept {name}")),
//!     }
//! }
//! ```
//!
//! A task is `input_required` meanwhile, and holds no thread and no future. Inside a call, the question goes back to
//! the client as a round of that call. The answer was checked against the form before the function sees it. A form is
//! flat: text, numbers, `bool`, choices ([`ElicitForm`]). For the derives, `serde` and `schemars` must be dependencies
//! of your own.
//!
//! Besides forms there are [URLs](ToolContext::elicit_url), [completions](ToolContext::sample) and
//! [roots](ToolContext::roots). A client that did not declare that it can be asked is not: the call returns
//! [`ElicitError`].
//!
//! # Steps
//!
//! After an answer the function runs again from its first line. What it has asked before is answered at once, and what
//! it has done in a [`step`](ToolContext::step) is not done again:
//!
//! ```
//! # use mcp_tasks::prelude::*;
//! # async fn upload(path: &str) -> Result<String, std::io::Error> { Ok(path.to_owned()) }
//! # async fn f(ctx: ToolContext, path: String) -> Result<String, ToolError> {
//! let url = ctx.step("upload", || upload(&path)).await?;
//! # Ok(url)
//! # }
//! ```
//!
//! Everything else between its calls on the context a function must do the same way every time;
//! [`now`](ToolContext::now), [`random`](ToolContext::random) and [`sleep`](ToolContext::sleep) help with that. The
//! whole contract is in
#![cfg_attr(any(doc, doctest), doc = "[`guide::replay`].")]
//!
//! # Progress
//!
//! [`progress`](ToolContext::progress) reports a number, a total and words; [`count_to`](ToolContext::count_to),
//! [`gauge_to`](ToolContext::gauge_to) and [`fraction`](ToolContext::fraction) keep count. A task shows the newest
//! report as its `statusMessage`; inside a call reports are `notifications/progress`, if the client gave a token.
//!
//! # Cancellation
//!
//! When a client cancels a task, its future is dropped at its next await. Work that a drop does not reach, such as
//! `spawn_blocking`, looks at the token:
//!
//! ```
//! # use mcp_tasks::prelude::*;
//! # async fn f(ctx: ToolContext, files: Vec<String>) -> Result<(), ToolError> {
//! let token = ctx.cancellation().clone();
//! tokio::task::spawn_blocking(move || {
//!     for file in files {
//!         if token.is_cancelled() {
//!             break;
//!         }
//!         // ...
//! #       let _ = file;
//!     }
//! })
//! .await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Errors
//!
//! Any error that comes through `?` becomes a [`ToolError`]: a result with `isError` that the model reads, and a task
//! that is `completed`. [`ToolError::protocol`] is a JSON-RPC error, and a task that is `failed`.
#![cfg_attr(any(doc, doctest), doc = "More in [`guide::errors`].")]
//!
//! # Arguments and results
//!
//! Each parameter is a property of the input schema: its doc comment is the description, an `Option` may be left out.
//! [`Args<T>`](Args) takes all arguments in one type instead. A call whose arguments do not fit gets a result that
//! names each one, and no task.
//!
//! Text is returned as text; any type that is `Serialize + JsonSchema` as structured content with an output schema;
//! rmcp's [`CallToolResult`](rmcp::model::CallToolResult) as it is ([`ToolOutput`](tool::ToolOutput)).
//!
//! # Who may
//!
//! A layer in front finds out who calls ([`Server::router`]), a [hook](host::TaskRuntimeBuilder::principal) tells the
//! runtime, a guard decides, and [`Caller`] is what a tool sees of it:
//!
//! ```
//! use mcp_tasks::prelude::*;
//!
//! async fn deployer(caller: &Caller) -> Result<(), Denied> {
//!     match caller.claim::<Vec<String>>("roles") {
//!         Some(roles) if roles.iter().any(|role| role == "deployer") => Ok(()),
//!         _ => Err(Denied::new("the role `deployer` is needed")),
//!     }
//! }
//!
//! /// Deploy a version.
//! #[mcp_task(guard = deployer)]
//! async fn deploy(caller: Caller, version: String) -> String {
//!     format!("{version}, by {}", caller.subject().unwrap_or("nobody"))
//! }
//! ```
//!
//! A task belongs to the caller who started it. To others it does not exist.
#![cfg_attr(any(doc, doctest), doc = "More in [`guide::http`].")]
//!
//! # State
//!
//! [`State<T>`](State) is what the application gave the runtime under that type. A tool that wants one that is not
//! there stops the start.
//!
//! ```standalone_crate
//! use mcp_tasks::prelude::*;
//!
//! struct Catalogue(Vec<String>);
//!
//! /// How many titles there are.
//! #[mcp_tool(read_only)]
//! async fn titles(State(catalogue): State<Catalogue>) -> String {
//!     catalogue.0.len().to_string()
//! }
//!
//! let runtime = TaskRuntime::builder().state(Catalogue(vec![])).build()?;
//! let server = Server::new(runtime);
//! # let _ = server;
//! # Ok::<(), mcp_tasks::StartError>(())
//! ```
//!
//! # Configuration
//!
//! Code over environment over `mcp-tasks.toml` ([`Config`]); the keys are at [`Settings`](config::Settings). Texts in
//! attributes may hold placeholders: `#[mcp_task(ttl = "${video.ttl:PT2H}")]`.
#![cfg_attr(any(doc, doctest), doc = "More in [`guide::configuration`].")]
//!
//! # In a server that already uses rmcp
//!
//! [`TaskRuntime::wrap`] adds the tools and the Tasks extension to an rmcp handler, for a transport of your own;
//! [`Server::wrapping`] serves the two together. Everything that is not ours goes to the handler. rmcp is re-exported
//! as [`rmcp`], so that both use one version.
//!
//! # Testing
//!
//! A tool is an ordinary function: one that takes no [`ToolContext`] is called as it is, with [`State::new`] and
//! [`Caller::from_principal`] for what the server would give. Keep the work itself in functions without a context, and
//! test those.
//!
//! ```
//! use mcp_tasks::prelude::*;
//! use mcp_tasks::Principal;
//!
//! #[mcp_tool]
//! async fn whoami(caller: Caller) -> String {
//!     caller.subject().unwrap_or("nobody").to_owned()
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let alice = Caller::from_principal(Principal::new("alice"));
//! assert_eq!(whoami(alice).await, "alice");
//! # });
//! ```
//!
//! The feature `testing` has a kit for tools with a context: it runs one without a server, answers its questions from a
//! script, lets time jump over its sleeps, and replays it from every place in its ledger.
#![cfg_attr(feature = "testing", doc = "See [`testing`].")]
//!
//! For the rest, [`TaskRuntime::handler`] is an rmcp handler to be driven by an rmcp client in memory,
//! [`without_inventory`](host::TaskRuntimeBuilder::without_inventory) keeps other tools out, and a
//! [`Clock`](host::Clock) of the test's own sets the time that tasks expire by.
//!
//! # Stores
//!
//! Tasks are kept in a [`TaskStore`](store::TaskStore). The [`MemoryStore`](store::MemoryStore), which is used unless
//! another is [given](host::TaskRuntimeBuilder::store), loses them when the process ends, and says so at start-up. With
//! the feature `sqlite` and `mcp.tasks.store.url = "sqlite:tasks.db"` they are in a file, and survive restarts and
//! crashes. On a server they are shared by any number of machines: with the feature `postgres` and
//! `postgres://user:password@host/database` in a database, with `redis` and `redis://host` on Redis or Valkey, where
//! what they survive is up to the server's settings, with `nats` and `nats://nats.internal?replicas=3` in NATS
//! JetStream.
//!
//! # Calling tools
//!
//! The feature `client` has the other side: a client that calls tools of any MCP server, ours or not, and sees their
//! tasks through to a result.
#![cfg_attr(feature = "client", doc = "See [`client`].")]
//! The package `mcp-tasks-cli` does the same from a terminal or a script.
//!
//! # Crate features
//!
//! The first two are on by default.
//!
//! * `http`: [`Server`] over Streamable HTTP, and rmcp's tower service for it. Pulls axum, hyper and http. Leave it out
//!   to serve on stdio alone, or to bring an rmcp transport of your own.
//! * `stdio`: [`Server`] over standard input and output. Leave it out where no client
//!   starts the server as its child.
//! * `nats`: `NatsStore`, and its choice by URL. Pulls async-nats, and rustls with ring for TLS. Leave it out where
//!   tasks are elsewhere.
//! * `sqlite`: `SqliteStore`, and its choice by URL. Pulls rusqlite and compiles SQLite, which needs a C compiler.
//!   Leave it out where tasks are in memory or in a store of your own.
//! * `redis`: `RedisStore`, for Redis and Valkey, and its choice by URL. Pulls redis-rs, and rustls with ring. Leave it
//!   out where tasks are elsewhere.
//! * `postgres`: `PostgresStore`, and its choice by URL. Pulls tokio-postgres, deadpool-postgres and rustls, which
//!   needs a C   compiler. Leave it out where no PostgreSQL is.
//! * `client`: the module `client`. Pulls rmcp's client, reqwest, and rustls with aws-lc-rs, which compiles C. For
//!   programs that call tools; leave it out of a server.
//! * `testing`: runs one tool without a server, with scripted answers and a clock of the test's own. Pulls nothing. For
//!   dev-dependencies.
#![doc = include_str!("architecture.md")]

// So that what the attributes write, `::mcp_tasks::…`, is right in this crate too.
#[allow(unused_extern_crates, reason = "used by what the attributes write inside this crate")]
extern crate self as mcp_tasks;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
mod call;
#[cfg(feature = "client")]
pub mod client;
pub mod config;
pub mod context;
pub mod host;
mod run;
pub mod serve;
pub mod store;
mod task;
#[cfg(feature = "testing")]
pub mod testing;
pub mod tool;

pub use mcp_tasks_core::{Principal, TaskId};
pub use mcp_tasks_macros::{ElicitForm, mcp_task, mcp_tool};
pub use rmcp;
pub use schemars;
pub use serde;

pub use crate::config::{Config, StartError};
pub use crate::context::{Elicited, Retry, ToolContext};
pub use crate::host::{TaskRuntime, TaskServer};
pub use crate::serve::{Error, Result, Server};
pub use crate::tool::{Args, Caller, Denied, ElicitError, ElicitForm, State, ToolError};

pub mod prelude;

#[cfg(any(doc, doctest))]
pub mod guide;

/// The README's programs, compiled. The file is outside this package, and only looked at when they are.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct ReadmeDoctests;
