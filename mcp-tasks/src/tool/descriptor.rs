//! What the attributes write about a function, in a form that a `const` can hold.

use rmcp::model::CallToolResult;

use crate::tool::argument::Arguments;
use crate::tool::caller::Guard;
use crate::tool::error::ToolError;
use crate::tool::invocation::{BoxFuture, Invocation};
use crate::tool::schema::{InputSchema, OutputSchema};

mod parts;

pub use parts::{SourceLocation, StateRequirement};

/// Whether a tool may run as a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolKind {
    /// Written with `#[mcp_task]`: a task for clients that declare the extension, an ordinary call for the others.
    Task,
    /// Written with `#[mcp_tool]`: always an ordinary call.
    Tool,
}

impl ToolKind {
    /// The attribute that makes a tool of this kind, for messages.
    #[must_use]
    pub const fn attribute(self) -> &'static str {
        match self {
            Self::Task => "mcp_task",
            Self::Tool => "mcp_tool",
        }
    }
}

/// What becomes of a task that was being worked on when its node died or was cut off.
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

/// What the expansion of an attribute can do for its tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolFunctions {
    input: fn(&mut InputSchema),
    output: fn(&mut OutputSchema),
    check: fn(&mut Arguments),
    call: fn(Invocation) -> BoxFuture<'static, Result<CallToolResult, ToolError>>,
}

impl ToolFunctions {
    /// `input` and `output` describe, `check` decodes the arguments for their problems alone, `call` runs the function.
    #[must_use]
    pub const fn new(
        input: fn(&mut InputSchema),
        output: fn(&mut OutputSchema),
        check: fn(&mut Arguments),
        call: fn(Invocation) -> BoxFuture<'static, Result<CallToolResult, ToolError>>,
    ) -> Self {
        Self {
            input,
            output,
            check,
            call,
        }
    }
}

/// One tool as its attribute describes it, before configuration is applied.
///
/// The texts of attributes still hold their `${key}` placeholders here; they are resolved at start-up.
#[derive(Debug, Clone, Copy)]
pub struct ToolDescriptor {
    kind: ToolKind,
    name: &'static str,
    functions: ToolFunctions,
    source: SourceLocation,
    title: Option<&'static str>,
    description: Option<&'static str>,
    doc: Option<&'static str>,
    ttl: Option<&'static str>,
    poll_interval: Option<&'static str>,
    version: Option<&'static str>,
    required: bool,
    defer: bool,
    single_use: bool,
    on_crash: OnCrash,
    grace: Option<&'static str>,
    placement: Option<&'static str>,
    read_only: Option<bool>,
    destructive: Option<bool>,
    idempotent: Option<bool>,
    open_world: Option<bool>,
    guard: Option<Guard>,
    states: &'static [StateRequirement],
}

impl ToolDescriptor {
    #[doc(hidden)]
    #[must_use]
    pub const fn new(kind: ToolKind, name: &'static str, functions: ToolFunctions, source: SourceLocation) -> Self {
        Self {
            kind,
            name,
            functions,
            source,
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
        }
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn with_title(mut self, title: &'static str) -> Self {
        self.title = Some(title);
        self
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn with_description(mut self, description: &'static str) -> Self {
        self.description = Some(description);
        self
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn with_doc(mut self, doc: &'static str) -> Self {
        self.doc = Some(doc);
        self
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn with_ttl(mut self, ttl: &'static str) -> Self {
        self.ttl = Some(ttl);
        self
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn with_poll_interval(mut self, poll_interval: &'static str) -> Self {
        self.poll_interval = Some(poll_interval);
        self
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn with_version(mut self, version: &'static str) -> Self {
        self.version = Some(version);
        self
    }

    /// `defer`.
    #[must_use]
    pub const fn with_defer(mut self, defer: bool) -> Self {
        self.defer = defer;
        self
    }

    /// `single_use`.
    #[must_use]
    pub const fn with_single_use(mut self, single_use: bool) -> Self {
        self.single_use = single_use;
        self
    }

    /// `on_crash = "…"`.
    #[must_use]
    pub const fn with_on_crash(mut self, on_crash: OnCrash) -> Self {
        self.on_crash = on_crash;
        self
    }

    /// `grace = "…"`.
    #[must_use]
    pub const fn with_grace(mut self, grace: &'static str) -> Self {
        self.grace = Some(grace);
        self
    }

    /// `placement = "…"`.
    #[must_use]
    pub const fn with_placement(mut self, placement: &'static str) -> Self {
        self.placement = Some(placement);
        self
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn with_required(mut self, required: bool) -> Self {
        self.required = required;
        self
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn with_read_only(mut self, read_only: bool) -> Self {
        self.read_only = Some(read_only);
        self
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn with_destructive(mut self, destructive: bool) -> Self {
        self.destructive = Some(destructive);
        self
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn with_idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = Some(idempotent);
        self
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn with_open_world(mut self, open_world: bool) -> Self {
        self.open_world = Some(open_world);
        self
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn with_guard(mut self, guard: Guard) -> Self {
        self.guard = Some(guard);
        self
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn with_states(mut self, states: &'static [StateRequirement]) -> Self {
        self.states = states;
        self
    }

    /// Which attribute it was written with.
    #[must_use]
    pub const fn kind(&self) -> ToolKind {
        self.kind
    }

    /// The name as written; may hold placeholders.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Where the attribute stands.
    #[must_use]
    pub const fn source(&self) -> SourceLocation {
        self.source
    }

    /// `title = "…"`.
    #[must_use]
    pub const fn title(&self) -> Option<&'static str> {
        self.title
    }

    /// `description = "…"`.
    #[must_use]
    pub const fn description(&self) -> Option<&'static str> {
        self.description
    }

    /// The doc comment of the function: the description where the attribute gives none. It holds no placeholders.
    #[must_use]
    pub const fn doc(&self) -> Option<&'static str> {
        self.doc
    }

    /// `ttl = "…"`.
    #[must_use]
    pub const fn ttl(&self) -> Option<&'static str> {
        self.ttl
    }

    /// `poll_interval = "…"`.
    #[must_use]
    pub const fn poll_interval(&self) -> Option<&'static str> {
        self.poll_interval
    }

    /// `version = "…"`.
    #[must_use]
    pub const fn version(&self) -> Option<&'static str> {
        self.version
    }

    /// `defer`: the call becomes a task where the function says so.
    #[must_use]
    pub const fn defer(&self) -> bool {
        self.defer
    }

    /// `single_use`: the state of a call that asks is accepted once.
    #[must_use]
    pub const fn single_use(&self) -> bool {
        self.single_use
    }

    /// `on_crash = "…"`.
    #[must_use]
    pub const fn on_crash(&self) -> OnCrash {
        self.on_crash
    }

    /// `grace = "…"`.
    #[must_use]
    pub const fn grace(&self) -> Option<&'static str> {
        self.grace
    }

    /// `placement = "…"`.
    #[must_use]
    pub const fn placement(&self) -> Option<&'static str> {
        self.placement
    }

    /// `required`: refused for clients that do not declare the extension.
    #[must_use]
    pub const fn required(&self) -> bool {
        self.required
    }

    /// The hint `read_only`.
    #[must_use]
    pub const fn read_only(&self) -> Option<bool> {
        self.read_only
    }

    /// The hint `destructive`.
    #[must_use]
    pub const fn destructive(&self) -> Option<bool> {
        self.destructive
    }

    /// The hint `idempotent`.
    #[must_use]
    pub const fn idempotent(&self) -> Option<bool> {
        self.idempotent
    }

    /// The hint `open_world`.
    #[must_use]
    pub const fn open_world(&self) -> Option<bool> {
        self.open_world
    }

    /// `guard = path`.
    #[must_use]
    pub const fn guard(&self) -> Option<Guard> {
        self.guard
    }

    /// What the `State<T>` parameters need.
    #[must_use]
    pub const fn states(&self) -> &'static [StateRequirement] {
        self.states
    }

    pub(crate) fn describe_input(&self, schema: &mut InputSchema) {
        (self.functions.input)(schema);
    }

    pub(crate) fn describe_output(&self, schema: &mut OutputSchema) {
        (self.functions.output)(schema);
    }

    pub(crate) fn check(&self, arguments: &mut Arguments) {
        (self.functions.check)(arguments);
    }

    pub(crate) fn call(&self, invocation: Invocation) -> BoxFuture<'static, Result<CallToolResult, ToolError>> {
        (self.functions.call)(invocation)
    }
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
/// assert_eq!(<add as ToolDefinition>::TOOL.name(), "add");
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
