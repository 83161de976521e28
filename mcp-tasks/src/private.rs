//! What generated code uses. Not part of the public contract: it changes together with the attributes. It re-exports, and
//! owns nothing; nothing in this crate imports from here.

pub use inventory;
pub use rmcp::model::CallToolResult;

#[cfg(feature = "__bench")]
pub use crate::host::bench::{Direct, Tokens};
pub use crate::tool::argument::{Args, Arguments, invalid_arguments_result};
pub use crate::tool::caller::{Caller, Denied};
pub use crate::tool::descriptor::{
    OnCrash, SourceLocation, StateRequirement, ToolDefinition, ToolDescriptor, ToolKind,
};
pub use crate::tool::error::ToolError;
pub use crate::tool::form::{ElicitChoice, ElicitField, ElicitForm};
pub use crate::tool::generated::{Argument, GuardFunction, SharedState, assert_field, blocking, boxed, guarded};
pub use crate::tool::invocation::{BoxFuture, Invocation};
pub use crate::tool::output::{OutputFunctions, Returned};
pub use crate::tool::parameter::ToolArgument;
pub use crate::tool::schema::{InputSchema, OutputSchema};
