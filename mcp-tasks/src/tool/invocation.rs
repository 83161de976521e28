//! One call of a tool's function: what its parameters are made of.

use std::any::Any;
use std::sync::Arc;

pub use futures::future::BoxFuture;
use serde_json::{Map, Value};

use crate::tool::argument::Arguments;
use crate::tool::caller::Caller;
use crate::tool::state::StateMap;

/// One run of a tool's function.
#[derive(Debug)]
pub struct Invocation {
    /// The run that the function is called in; the floor above knows its type.
    run: Arc<dyn Any + Send + Sync>,
    caller: Caller,
    states: Arc<StateMap>,
    arguments: Map<String, Value>,
}

impl Invocation {
    pub(crate) fn new(
        run: Arc<dyn Any + Send + Sync>,
        caller: Caller,
        states: Arc<StateMap>,
        arguments: Map<String, Value>,
    ) -> Self {
        Self {
            run,
            caller,
            states,
            arguments,
        }
    }

    /// The run, if it is one of this type.
    pub(crate) fn run<R: Send + Sync + 'static>(&self) -> Option<Arc<R>> {
        self.run.clone().downcast().ok()
    }

    /// What the application shares with its tools.
    pub(crate) fn states(&self) -> &StateMap {
        &self.states
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
