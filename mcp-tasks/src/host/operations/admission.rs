//! The checks of a call, in their order, and their outcome.

use mcp_tasks_core::{Decision, decide};
use rmcp::ErrorData;
use rmcp::model::CallToolResult;
use serde_json::{Map, Value};

use super::ask_guard;
use crate::host::extension::{self, TasksExtension};
use crate::run::Deferral;
use crate::tool::argument::{Arguments, invalid_arguments_result};
use crate::tool::caller::Caller;
use crate::tool::registry::RegisteredTool;

/// The outcome of a call's checks.
#[derive(Debug)]
pub(crate) enum Admission {
    /// The tool runs.
    Run { decision: Decision, deferral: Deferral },
    /// The call has its result without a run.
    Answered(Box<CallToolResult>),
}

/// Before anything is minted: the tool's guard agrees, the extension is declared if it must be, the arguments fit.
///
/// # Errors
/// The guard's; `-32602` for an extension that is declared wrongly; `-32021` for a tool that needs the extension.
pub(crate) async fn admit(
    tool: &RegisteredTool,
    caller: &Caller,
    extension: TasksExtension,
    arguments: &Map<String, Value>,
) -> Result<Admission, ErrorData> {
    ask_guard(tool.guard, caller).await?;
    let decision = decide(tool.support(), extension.is_declared()?);
    if decision == Decision::MissingCapability {
        return Err(extension::missing(
            "Missing required client capability: this tool runs only as a task, for clients that declare the extension \
             io.modelcontextprotocol/tasks",
        ));
    }
    let mut checked = Arguments::new(arguments.clone());
    (tool.descriptor.check)(&mut checked);
    if !checked.problems().is_empty() {
        // SEP-1303: a result that a model can read and mend, the same whether the call would be a task or not.
        let result = invalid_arguments_result(&tool.name, checked.problems());
        return Ok(Admission::Answered(Box::new(result)));
    }
    let deferral = match (tool.descriptor.defer, decision) {
        (false, _) => Deferral::Refused,
        (true, Decision::Task) => Deferral::Pending,
        (true, _) => Deferral::Done,
    };
    Ok(Admission::Run { decision, deferral })
}
