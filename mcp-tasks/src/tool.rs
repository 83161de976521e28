//! What a tool is. For authors of tools, and for programs that register tools by hand.
//!
//! * Parameters: [`Args`], [`State`], [`Caller`], and every [`ToolArgument`]
//! * Results: every [`ToolOutput`], and [`ToolError`] or another [`ToolFailure`]
//! * Forms of questions: [`ElicitForm`], [`ElicitField`], [`ElicitChoice`], and why there is no answer: [`ElicitError`]
//! * Guards: [`Denied`]; claims of a caller: [`Json`]
//! * What an attribute registers: [`ToolDefinition`], [`ToolDescriptor`]

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

pub use argument::Args;
pub use caller::{Caller, Denied, Guard};
pub use descriptor::{OnCrash, SourceLocation, StateRequirement, ToolDefinition, ToolDescriptor, ToolKind};
pub use elicit_error::ElicitError;
pub use error::ToolError;
pub use form::{ElicitChoice, ElicitField, ElicitForm, form_schema, form_schema_json};
pub use output::{ToolFailure, ToolOutput};
pub use parameter::ToolArgument;
pub use state::State;
