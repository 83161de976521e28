//! What generated code uses. Not part of the public contract: it changes together with the attributes.

use std::fmt;
use std::future::Future;
use std::panic;
use std::pin::Pin;
use std::sync::Arc;

pub use inventory;
pub use rmcp::model::CallToolResult;
use serde_json::{Map, Value};

use crate::context::ToolContext;
use crate::tool::argument::ArgumentProblem;
use crate::tool::argument::invalid_arguments_result;
pub use crate::tool::argument::{Args, Arguments, ToolArgument};
pub use crate::tool::caller::{Caller, Denied};
pub use crate::tool::descriptor::{
    OnCrash, SourceLocation, StateRequirement, ToolDefinition, ToolDescriptor, ToolFunctions, ToolKind,
};
pub use crate::tool::error::ToolError;
pub use crate::tool::form::{ElicitChoice, ElicitField, ElicitForm};
pub use crate::tool::output::{OutputFunctions, Returned};
pub use crate::tool::schema::{InputSchema, OutputSchema};
use crate::tool::state::{State, StateMap};

/// A boxed future, as the `futures` crate has it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One run of a tool's function.
#[derive(Debug)]
pub struct Invocation {
    context: ToolContext,
    caller: Caller,
    states: Arc<StateMap>,
    arguments: Map<String, Value>,
}

impl Invocation {
    pub(crate) const fn new(
        context: ToolContext,
        caller: Caller,
        states: Arc<StateMap>,
        arguments: Map<String, Value>,
    ) -> Self {
        Self {
            context,
            caller,
            states,
            arguments,
        }
    }

    /// For a `ToolContext` parameter.
    #[must_use]
    pub fn context(&self) -> ToolContext {
        self.context.clone()
    }

    /// For a `Caller` parameter.
    #[must_use]
    pub fn caller(&self) -> Caller {
        self.caller.clone()
    }

    /// Takes the arguments out.
    #[must_use]
    pub fn arguments(&mut self) -> Arguments {
        Arguments::new(std::mem::take(&mut self.arguments))
    }
}

/// What can be done with a parameter that is an argument.
///
/// The bounds stand on [`of`](Self::of) alone, which generated code calls once for a parameter, so that a type that
/// does not fit is one error.
pub struct Argument<T> {
    describe: fn(&mut InputSchema, &str, Option<&str>),
    take: fn(&mut Arguments, &str) -> Option<T>,
}

impl<T> Argument<T> {
    /// A parameter that is one argument.
    #[must_use]
    pub const fn of() -> Self
    where
        T: ToolArgument,
    {
        Self {
            describe: InputSchema::property::<T>,
            take: Arguments::take::<T>,
        }
    }

    /// A parameter that is all arguments; it has no name and no description of its own.
    #[must_use]
    pub const fn all() -> Self
    where
        T: ToolArgument,
    {
        Self {
            describe: |schema, _, _| schema.whole::<T>(),
            take: |arguments, _| arguments.take_all::<T>(),
        }
    }

    /// Adds it to the input schema.
    pub fn describe(&self, schema: &mut InputSchema, name: &str, description: Option<&str>) {
        (self.describe)(schema, name, description);
    }

    /// Decodes it.
    pub fn take(&self, arguments: &mut Arguments, name: &str) -> Option<T> {
        (self.take)(arguments, name)
    }
}

impl<T> fmt::Debug for Argument<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Argument").finish_non_exhaustive()
    }
}

/// What can be done with a `State<T>` parameter; one place for its bounds, as with [`Argument`].
pub struct SharedState<T> {
    requirement: StateRequirement,
    get: fn(&StateMap) -> Option<State<T>>,
}

impl<T> SharedState<T> {
    /// The parameter of this type.
    #[must_use]
    pub const fn of() -> Self
    where
        T: Send + Sync + 'static,
    {
        Self {
            requirement: StateRequirement::of::<T>(),
            get: StateMap::get::<T>,
        }
    }

    /// What the server has to be given.
    #[must_use]
    pub const fn requirement(&self) -> StateRequirement {
        self.requirement
    }

    /// The value.
    ///
    /// # Errors
    ///
    /// There is none; a server that started has it.
    pub fn get(&self, invocation: &Invocation) -> Result<State<T>, ToolError> {
        (self.get)(&invocation.states).ok_or_else(|| {
            let message = format!("the server has no state `{}`", self.requirement.type_name());
            ToolError::protocol(rmcp::ErrorData::internal_error(message, None))
        })
    }
}

impl<T> fmt::Debug for SharedState<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedState").finish_non_exhaustive()
    }
}

/// Boxes the future of a tool. A future that is not `Send` is an error where this is called, which is on the function.
pub fn boxed<'a, T>(future: impl Future<Output = T> + Send + 'a) -> BoxFuture<'a, T> {
    Box::pin(future)
}

/// What `guard = path` names. The future's being `Send` is no part of it, so that the compiler can say why one is not.
#[diagnostic::on_unimplemented(
    message = "this cannot be the guard of a tool",
    label = "not an `async fn(&Caller) -> Result<(), Denied>`",
    note = "write `async fn guard(caller: &Caller) -> Result<(), Denied>`"
)]
pub trait GuardFunction<'a, Fut> {
    /// Asks it.
    fn ask(&self, caller: &'a Caller) -> Fut;
}

#[diagnostic::do_not_recommend]
impl<'a, F, Fut> GuardFunction<'a, Fut> for F
where
    F: Fn(&'a Caller) -> Fut,
    Fut: Future<Output = Result<(), Denied>>,
{
    fn ask(&self, caller: &'a Caller) -> Fut {
        self(caller)
    }
}

/// Asks a guard.
pub fn guarded<'a, G, Fut>(guard: G, caller: &'a Caller) -> BoxFuture<'a, Result<(), Denied>>
where
    G: GuardFunction<'a, Fut>,
    Fut: Future<Output = Result<(), Denied>> + Send + 'a,
{
    Box::pin(guard.ask(caller))
}

/// Runs a function that is not async where it may block. Its panic goes on in the caller.
///
/// A blocking function cannot be stopped: dropping the future leaves it running to its end, its result unused.
pub async fn blocking<R: Send + 'static>(function: impl FnOnce() -> R + Send + 'static) -> Result<R, ToolError> {
    match tokio::task::spawn_blocking(function).await {
        Ok(returned) => Ok(returned),
        Err(error) => match error.try_into_panic() {
            Ok(payload) => panic::resume_unwind(payload),
            // The runtime is shutting down and did not start it.
            Err(_) => Err(ToolError::protocol(rmcp::ErrorData::internal_error(
                "the server is shutting down",
                None,
            ))),
        },
    }
}

/// Stands for a tool whose attribute has an error, which is reported where it is; never run.
pub const BROKEN: ToolDescriptor = ToolDescriptor::new(
    ToolKind::Tool,
    "",
    ToolFunctions::new(
        |_| {},
        |_| {},
        |_| {},
        |_| Box::pin(async { Ok(CallToolResult::default()) }),
    ),
    SourceLocation::new("", 0, 0, ""),
);

/// The end of a run whose arguments did not decode.
#[must_use]
pub fn invalid_arguments(tool: &str, problems: &[ArgumentProblem]) -> CallToolResult {
    invalid_arguments_result(tool, problems)
}

/// For the derive: fails on the type of a field that a form cannot have.
pub const fn assert_field<T: ElicitField>() {}

/// The engine without a wire in front of it, for the project's own benchmarks.
#[derive(Debug, Clone)]
pub struct Direct(crate::TaskRuntime);

impl Direct {
    /// The engine of `runtime`.
    #[must_use]
    pub const fn new(runtime: crate::TaskRuntime) -> Self {
        Self(runtime)
    }

    fn client() -> Result<crate::task::Client, serde_json::Error> {
        Ok(crate::task::Client {
            caller: Caller::anonymous(),
            capabilities: serde_json::from_str(r#"{"elicitation":{}}"#)?,
            trace: None,
        })
    }

    /// Creates a task, as a `tools/call` whose checks are done would.
    pub async fn create(
        &self,
        tool: &str,
        arguments: &Value,
    ) -> Result<Arc<mcp_tasks_core::TaskRecord>, Box<dyn std::error::Error + Send + Sync>> {
        let engine = &self.0.engine;
        let tool = engine.registry().get(tool).ok_or("no such tool")?;
        let new = crate::task::NewTask {
            tool,
            arguments: mcp_tasks_core::Json::of(arguments)?,
            client: Self::client()?,
            before: None,
        };
        Ok(engine.create(new).await?)
    }

    /// Looks a task up, as `tasks/get` does.
    pub async fn get(&self, id: &mcp_tasks_core::TaskId) -> Result<Arc<mcp_tasks_core::TaskRecord>, rmcp::ErrorData> {
        self.0.engine.get(id, None).await
    }

    /// Answers, as `tasks/update` does.
    pub async fn answer(
        &self,
        id: &mcp_tasks_core::TaskId,
        responses: std::collections::BTreeMap<String, mcp_tasks_core::Json>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.0.engine.answer(id, &Self::client()?, responses).await?)
    }
}

/// The tokens of synchronous calls, all of one call of one anonymous caller, for the project's own benchmarks and fuzzing.
#[derive(Debug)]
pub struct Tokens(crate::call::request_state::RequestStateCodec);

impl Tokens {
    /// Tokens under `keys`, as the configuration has them.
    pub fn new(keys: &str) -> Result<Self, String> {
        let ttl = std::time::Duration::from_secs(300);
        crate::call::request_state::RequestStateCodec::new(keys, ttl).map(Self)
    }

    fn binding() -> crate::call::request_state::Binding<'static> {
        crate::call::request_state::Binding {
            principal: None,
            method: "tools/call",
            tool: "tool",
            arguments: mcp_tasks_core::Fingerprint::of("arguments", "", None),
        }
    }

    /// Seals, as a call that asks does.
    pub fn seal(&self, now: mcp_tasks_core::Timestamp, state: &[u8]) -> Result<String, Box<dyn std::error::Error>> {
        Ok(self.0.seal(&Self::binding(), now, state)?)
    }

    /// Opens, as a call that is retried does.
    #[must_use]
    pub fn open(&self, now: mcp_tasks_core::Timestamp, token: &str) -> Option<Vec<u8>> {
        self.0.open(&Self::binding(), now, token).map(|(state, _)| state)
    }
}
