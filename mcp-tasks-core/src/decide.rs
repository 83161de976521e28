//! The decision rule: what a `tools/call` becomes.

/// What a tool's author allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TaskSupport {
    /// `#[mcp_tool]`: runs inside the call, always.
    Never,
    /// `#[mcp_task]`: a task for clients that know tasks, inside the call for the rest.
    Optional,
    /// `#[mcp_task(required = true)]`: a task or nothing.
    Required,
}

/// What a `tools/call` becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Decision {
    /// The body runs inside the call and its result is the answer.
    Synchronous,
    /// A task is minted and its handle is the answer.
    Task,
    /// `-32021`: the tool is a task or nothing, and this request does not declare the extension.
    MissingCapability,
}

/// Decides from the tool and from *this* request alone, never from an earlier one.
///
/// | tool | request declares the extension | outcome |
/// |---|---|---|
/// | `#[mcp_tool]` | either | [`Decision::Synchronous`] |
/// | `#[mcp_task]` | yes | [`Decision::Task`] |
/// | `#[mcp_task]` | no | [`Decision::Synchronous`] |
/// | `#[mcp_task(required = true)]` | yes | [`Decision::Task`] |
/// | `#[mcp_task(required = true)]` | no | [`Decision::MissingCapability`] |
///
/// Tasks extension, "Capability Negotiation": the server decides on a per-request basis, and must not answer with a
/// task where the request does not declare the extension.
///
/// ```
/// use mcp_tasks_core::{Decision, TaskSupport, decide};
///
/// assert_eq!(decide(TaskSupport::Optional, true), Decision::Task);
/// assert_eq!(decide(TaskSupport::Required, false), Decision::MissingCapability);
/// ```
#[must_use]
pub const fn decide(support: TaskSupport, declared: bool) -> Decision {
    match (support, declared) {
        (TaskSupport::Never, _) | (TaskSupport::Optional, false) => Decision::Synchronous,
        (TaskSupport::Optional | TaskSupport::Required, true) => Decision::Task,
        (TaskSupport::Required, false) => Decision::MissingCapability,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table() {
        use Decision::{MissingCapability, Synchronous, Task};
        use TaskSupport::{Never, Optional, Required};

        for (support, declared, outcome) in [
            (Never, false, Synchronous),
            (Never, true, Synchronous),
            (Optional, false, Synchronous),
            (Optional, true, Task),
            (Required, false, MissingCapability),
            (Required, true, Task),
        ] {
            assert_eq!(decide(support, declared), outcome, "{support:?} {declared}");
        }
    }
}
