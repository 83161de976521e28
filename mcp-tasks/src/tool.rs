//! What a tool is: what the attributes register, what an argument, a result, a form, a caller and a state are.

pub(crate) mod argument;
pub(crate) mod caller;
pub(crate) mod descriptor;
pub(crate) mod elicit_error;
pub(crate) mod error;
pub(crate) mod form;
pub(crate) mod generated;
pub(crate) mod invocation;
pub(crate) mod output;
pub(crate) mod parameter;
pub(crate) mod registry;
pub(crate) mod schema;
pub(crate) mod state;

pub use mcp_tasks_core::Json;

pub use argument::{Args, ArgumentProblem, Arguments, invalid_arguments_result};
pub use caller::{Caller, Denied, Guard};
pub use descriptor::{OnCrash, SourceLocation, StateRequirement, ToolDefinition, ToolDescriptor, ToolKind};
pub use elicit_error::ElicitError;
pub use error::ToolError;
pub use form::{ElicitChoice, ElicitField, ElicitForm, form_schema, form_schema_json};
pub use output::{ToolFailure, ToolOutput};
pub use parameter::ToolArgument;
pub use state::State;
