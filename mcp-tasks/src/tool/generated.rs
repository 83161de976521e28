//! What generated code calls, through `__private`. It changes together with the attributes.

use std::fmt;
use std::future::Future;
use std::panic;

use crate::tool::argument::Arguments;
use crate::tool::caller::{Caller, Denied};
use crate::tool::descriptor::StateRequirement;
use crate::tool::error::ToolError;
use crate::tool::form::ElicitField;
use crate::tool::invocation::{BoxFuture, Invocation};
use crate::tool::parameter::ToolArgument;
use crate::tool::schema::InputSchema;
use crate::tool::state::{State, StateMap};

/// How a parameter that is an argument is described and decoded.
///
/// The bounds stand on [`of`](Self::of) alone, which generated code calls once for a parameter, so that a type that
/// does not fit is one error.
pub struct Argument<T> {
    describe: fn(&mut InputSchema, &str, Option<&str>),
    decode: fn(&mut Arguments, &str) -> Option<T>,
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
            decode: Arguments::decode::<T>,
        }
    }

    /// A parameter that is all arguments; it has no name and no description of its own.
    #[must_use]
    pub const fn all() -> Self
    where
        T: ToolArgument,
    {
        Self {
            describe: |schema, _, _| schema.all::<T>(),
            decode: |arguments, _| arguments.decode_all::<T>(),
        }
    }

    /// Adds it to the input schema.
    pub fn describe(&self, schema: &mut InputSchema, name: &str, description: Option<&str>) {
        (self.describe)(schema, name, description);
    }

    /// Decodes it.
    pub fn decode(&self, arguments: &mut Arguments, name: &str) -> Option<T> {
        (self.decode)(arguments, name)
    }
}

impl<T> fmt::Debug for Argument<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Argument").finish_non_exhaustive()
    }
}

/// How a `State<T>` parameter gets its value; its bounds stand in one place, as with [`Argument`].
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
        (self.get)(invocation.states()).ok_or_else(|| {
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

/// What `guard = path` names. `Send` is asked of the future elsewhere, so that the compiler can say why one is not.
#[diagnostic::on_unimplemented(
    message = "this cannot be the guard of a tool",
    label = "not an `async fn(&Caller) -> Result<(), Denied>`",
    note = "write `async fn guard(caller: &Caller) -> Result<(), Denied>`"
)]
pub trait GuardFunction<'a, Fut> {
    /// Calls it.
    fn check(&self, caller: &'a Caller) -> Fut;
}

#[diagnostic::do_not_recommend]
impl<'a, F, Fut> GuardFunction<'a, Fut> for F
where
    F: Fn(&'a Caller) -> Fut,
    Fut: Future<Output = Result<(), Denied>>,
{
    fn check(&self, caller: &'a Caller) -> Fut {
        self(caller)
    }
}

/// Calls a guard.
pub fn guarded<'a, G, Fut>(guard: G, caller: &'a Caller) -> BoxFuture<'a, Result<(), Denied>>
where
    G: GuardFunction<'a, Fut>,
    Fut: Future<Output = Result<(), Denied>> + Send + 'a,
{
    Box::pin(guard.check(caller))
}

/// Runs a function that is not async on a thread where it may block. Its panic goes on in the caller.
///
/// A blocking function cannot be stopped: dropping the future leaves it running to its end, its result unused.
pub async fn blocking<R: Send + 'static>(function: impl FnOnce() -> R + Send + 'static) -> Result<R, ToolError> {
    match tokio::task::spawn_blocking(function).await {
        Ok(returned) => Ok(returned),
        Err(error) => match error.try_into_panic() {
            Ok(payload) => panic::resume_unwind(payload),
            // The runtime shuts down and did not start it.
            Err(_) => Err(ToolError::protocol(rmcp::ErrorData::internal_error(
                "the server is shutting down",
                None,
            ))),
        },
    }
}

/// For the derive: fails on the type of a field that a form cannot have.
pub const fn assert_field<T: ElicitField>() {}
