//! The attributes of `mcp-tasks`. Depend on `mcp-tasks`, which re-exports them: generated code uses its hidden parts.
//!
//! One file is one pass: `attr` reads the attribute, `item` the function, `check` holds the rules over both, `expand`
//! writes the registration and `fallback` what stands in for it after an error. All passes report into one `diag` and go
//! on, so that one compilation shows every mistake.

mod attr;
mod check;
mod diag;
mod expand;
mod fallback;
mod form;
mod item;

use proc_macro::TokenStream;

/// Makes a function a tool that runs as a task for clients that declare the tasks extension.
///
/// The function stays what it is and can be called as before. Its parameters are the arguments of the tool, each one a
/// property of the input schema: the doc comment of the parameter is the description, an `Option` may be left out. Not
/// arguments but given by the server are parameters of the types `ToolContext`, `State<T>` and `Caller`, known by these
/// names; `Args<T>` takes all arguments in one type. A function that is not async runs on a thread where it may block.
///
/// Beside the function a type of the same name stands for the tool, for registration by hand, so there can be no other
/// type and no module of that name there. Every tool of the program is otherwise collected at link time.
///
/// It works on free functions, also inside another function; not on methods, generic, `unsafe`, `extern` or `const`
/// functions, and its arguments own what they hold.
///
/// | key | value | without it |
/// |---|---|---|
/// | `name` | text | the name of the function |
/// | `title` | text | none |
/// | `description` | text | the doc comment |
/// | `ttl` | duration or `unlimited`: how long the task is kept from its creation | `mcp.tasks.default-ttl` |
/// | `poll_interval` | duration: how often clients should poll | `mcp.tasks.default-poll-interval` |
/// | `required` | alone, or `true` or `false`: refuse clients without the extension | `false` |
/// | `grace` | duration of at most 30 s: work that ends within it is answered at once, without a task | a task from the start |
/// | `defer` | alone, or `true` or `false`: the call becomes a task where the function awaits `ctx.defer()`; with `required`, for clients that declare the extension alone | `false` |
/// | `on_crash` | `"fail"` or `"replay"`: what becomes of a running task whose node died | `"fail"` |
/// | `placement` | `"local"` or `"any"`: whether the node that accepts a call runs its task, or any node of the deployment that has the tool; not with `grace` | `"local"` |
/// | `version` | text: a parked task of another version fails rather than go on | any version goes on |
/// | `single_use` | alone, or `true` or `false`: the state of a call that asks is accepted once | `false` |
/// | `read_only`, `destructive`, `idempotent`, `open_world` | alone, or `true` or `false`: hints to clients | no hint |
/// | `guard` | path of an `async fn(&Caller) -> Result<(), Denied>` | everyone may call |
/// | `crate` | text: the path of `mcp-tasks`, where it is re-exported or renamed | `::mcp_tasks` |
///
/// Every text may hold `${key}` and `${key:default}`, filled from configuration at start-up. Durations are ISO 8601, as
/// `PT1H30M`, or human, as `1h 30m`; a mistake in one that is written out is a compile error.
///
/// ```
/// use mcp_tasks::tool::ToolDefinition;
/// use mcp_tasks::prelude::*;
///
/// /// Re-encode a video.
/// #[mcp_task(ttl = "${video.ttl:PT2H}", poll_interval = "PT5S", on_crash = "replay")]
/// async fn encode(
///     ctx: ToolContext,
///     /// Where the source is
///     uri: String,
///     height: Option<u32>,
/// ) -> Result<String, ToolError> {
///     ctx.progress(1.0).total(2.0).message("reading").send();
///     Ok(format!("{uri} at {} lines", height.unwrap_or(720)))
/// }
///
/// // For a program that registers its tools by hand.
/// assert_eq!(encode::TOOL.name, "encode");
/// ```
#[proc_macro_attribute]
pub fn mcp_task(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool(attr::Kind::Task, arguments.into(), item.into()).into()
}

/// Makes a function a tool that always answers in the call itself.
///
/// ```
/// use mcp_tasks::prelude::*;
///
/// /// Add two numbers.
/// #[mcp_tool(read_only, idempotent)]
/// fn add(left: i64, right: i64) -> String {
///     left.saturating_add(right).to_string()
/// }
///
/// assert_eq!(add(1, 2), "3");
/// ```
///
/// As `mcp_task`, without the keys that only a task has: `ttl`, `poll_interval`, `required`, `grace`, `defer`,
/// `on_crash`, `placement` and `version`.
#[proc_macro_attribute]
pub fn mcp_tool(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool(attr::Kind::Tool, arguments.into(), item.into()).into()
}

/// Makes a struct a form that a tool can ask a person to fill in, or an enum without data a choice in one.
///
/// Needs `Deserialize` and `JsonSchema` beside it. `#[elicit(crate = "path")]` names `mcp-tasks` where it is renamed.
///
/// ```
/// use mcp_tasks::prelude::*;
///
/// #[derive(Deserialize, JsonSchema, ElicitForm)]
/// struct Publish {
///     /// Who may see it
///     channel: Channel,
///     title: Option<String>,
/// }
///
/// #[derive(Deserialize, JsonSchema, ElicitForm)]
/// enum Channel {
///     Everybody,
///     Colleagues,
/// }
/// ```
#[proc_macro_derive(ElicitForm, attributes(elicit))]
pub fn elicit_form(item: TokenStream) -> TokenStream {
    form::derive(item.into()).into()
}
