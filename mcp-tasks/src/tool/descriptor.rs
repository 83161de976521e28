//! What the attributes write about a function, in a form that a `const` can hold.

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;

use rmcp::model::CallToolResult;

use crate::tool::argument::Arguments;
use crate::tool::caller::Guard;
use crate::tool::error::ToolError;
use crate::tool::invocation::{BoxFuture, Invocation};
use crate::tool::schema::{InputSchema, OutputSchema};

/// Whether a tool may run as a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolKind {
    /// Written with `#[mcp_task]`: a task for clients that declare the extension, an ordinary call for the others.
    Task,
    /// Written with `#[mcp_tool]`: always an ordinary call.
    Tool,
}

/// What becomes of a task whose node died, or lost the store, while it ran the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OnCrash {
    /// It fails, with words that say so. What the work had done by then is not known.
    #[default]
    Fail,
    /// Another node runs the function again from the top, against the ledger: for a function whose work between its steps
    /// may be done twice.
    Replay,
}

/// Where a tool stands in the source; shown as `file:line`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    clippy::exhaustive_structs,
    reason = "the attributes write it as a literal in other crates"
)]
pub struct SourceLocation {
    /// The file, as the compiler was given it.
    pub file: &'static str,
    /// The line, counted from 1.
    pub line: u32,
    /// The column, counted from 1.
    pub column: u32,
    /// The path of the function. Two tools that one macro writes have the rest in common.
    pub path: &'static str,
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A [`State<T>`](crate::State) parameter: what has to be given to the server before it starts.
#[derive(Debug, Clone, Copy)]
pub struct StateRequirement {
    // Functions, because `TypeId::of` is no `const fn` on the oldest supported compiler.
    type_id: fn() -> TypeId,
    shared_type_id: fn() -> TypeId,
    type_name: fn() -> &'static str,
}

impl StateRequirement {
    /// The requirement of a `State<T>` parameter.
    #[must_use]
    pub const fn of<T: Send + Sync + 'static>() -> Self {
        Self {
            type_id: TypeId::of::<T>,
            shared_type_id: TypeId::of::<Arc<T>>,
            type_name: std::any::type_name::<T>,
        }
    }

    /// The type that is needed.
    #[must_use]
    pub fn type_id(&self) -> TypeId {
        (self.type_id)()
    }

    /// The `Arc` of the type, which is another type: an application that gave one has no state of this type.
    pub(crate) fn shared_type_id(&self) -> TypeId {
        (self.shared_type_id)()
    }

    /// The name of the type, for messages.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        (self.type_name)()
    }
}

/// One tool as its attribute describes it, before configuration is applied.
///
/// The texts of attributes still hold their `${key}` placeholders here; they are resolved at start-up.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::exhaustive_structs,
    reason = "the attributes write it as a literal in other crates"
)]
pub struct ToolDescriptor {
    /// Which attribute it was written with.
    pub kind: ToolKind,
    /// The name as written; may hold placeholders.
    pub name: &'static str,
    /// Where the attribute stands.
    pub source: SourceLocation,
    /// `title = "…"`.
    pub title: Option<&'static str>,
    /// `description = "…"`.
    pub description: Option<&'static str>,
    /// The doc comment of the function: the description where the attribute gives none. It holds no placeholders.
    pub doc: Option<&'static str>,
    /// `ttl = "…"`.
    pub ttl: Option<&'static str>,
    /// `poll_interval = "…"`.
    pub poll_interval: Option<&'static str>,
    /// `version = "…"`.
    pub version: Option<&'static str>,
    /// `required`: refused for clients that do not declare the extension.
    pub required: bool,
    /// `defer`: the call becomes a task where the function awaits `ctx.defer()`.
    pub defer: bool,
    /// `single_use`: the state of a call that asks is accepted once.
    pub single_use: bool,
    /// `on_crash = "…"`.
    pub on_crash: OnCrash,
    /// `grace = "…"`.
    pub grace: Option<&'static str>,
    /// `placement = "…"`.
    pub placement: Option<&'static str>,
    /// The hint `read_only`.
    pub read_only: Option<bool>,
    /// The hint `destructive`.
    pub destructive: Option<bool>,
    /// The hint `idempotent`.
    pub idempotent: Option<bool>,
    /// The hint `open_world`.
    pub open_world: Option<bool>,
    /// `guard = path`.
    pub guard: Option<Guard>,
    /// What the `State<T>` parameters need.
    pub states: &'static [StateRequirement],
    /// Describes the arguments.
    #[doc(hidden)]
    pub input: fn(&mut InputSchema),
    /// Describes the result.
    #[doc(hidden)]
    pub output: fn(&mut OutputSchema),
    /// Decodes the arguments for their problems alone.
    #[doc(hidden)]
    pub check: fn(&mut Arguments),
    /// Runs the function.
    #[doc(hidden)]
    pub call: fn(Invocation) -> BoxFuture<'static, Result<CallToolResult, ToolError>>,
}

impl ToolDescriptor {
    /// A tool with nothing set: the attributes write what differs from it. It also stands for a tool
    /// whose attribute has an error.
    #[doc(hidden)]
    pub const EMPTY: Self = Self {
        kind: ToolKind::Tool,
        name: "",
        source: SourceLocation {
            file: "",
            line: 0,
            column: 0,
            path: "",
        },
        title: None,
        description: None,
        doc: None,
        ttl: None,
        poll_interval: None,
        version: None,
        required: false,
        defer: false,
        single_use: false,
        on_crash: OnCrash::Fail,
        grace: None,
        placement: None,
        read_only: None,
        destructive: None,
        idempotent: None,
        open_world: None,
        guard: None,
        states: &[],
        input: |_| {},
        output: |_| {},
        check: |_| {},
        call: |_| Box::pin(async { Ok(CallToolResult::default()) }),
    };
}

inventory::collect!(ToolDescriptor);

/// A tool as a type, for registration by hand.
///
/// `#[mcp_task]` and `#[mcp_tool]` put a type beside the function that has its name and implements this, so that a
/// tool can be named where link-time collection is not wanted or not available.
///
/// ```standalone_crate
/// use mcp_tasks::tool::ToolDefinition;
/// use mcp_tasks::mcp_tool;
///
/// /// Adds two numbers
/// #[mcp_tool]
/// async fn add(a: i64, b: i64) -> String {
///     (a + b).to_string()
/// }
///
/// assert_eq!(<add as ToolDefinition>::TOOL.name, "add");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "no `#[mcp_task]` or `#[mcp_tool]` function of this name",
    note = "name the function itself, as in `register::<encode>()` for `#[mcp_task] async fn encode(..)`"
)]
pub trait ToolDefinition {
    /// What the attribute says about the tool.
    const TOOL: ToolDescriptor;
}
