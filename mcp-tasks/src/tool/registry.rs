//! The tools of a server, with their configuration applied.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcp_tasks_core::TaskSupport;
use mcp_tasks_core::ledger::Fingerprint;
use rmcp::model::Tool;

use crate::tool::caller::Guard;
use crate::tool::descriptor::{ToolDescriptor, ToolKind};

/// All tools of a server, in the order of their names.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    tools: BTreeMap<Arc<str>, Arc<RegisteredTool>>,
}

/// Which node runs a tool's tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// The one that accepts the call.
    Local,
    /// Whichever has the tool and takes the task on.
    Any,
}

impl Placement {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "local" => Ok(Self::Local),
            "any" => Ok(Self::Any),
            _ => Err(format!("`{text}` is no placement; write `any` or `local`")),
        }
    }
}

/// One tool with its configuration applied.
pub(crate) struct RegisteredTool {
    pub(crate) descriptor: ToolDescriptor,
    pub(crate) name: Arc<str>,
    /// How it is listed.
    pub(crate) model: Tool,
    /// `None` is unlimited.
    pub(crate) ttl: Option<Duration>,
    pub(crate) poll_interval: Duration,
    pub(crate) required: bool,
    /// How long a call may take before it becomes a task.
    pub(crate) grace: Option<Duration>,
    pub(crate) placement: Placement,
    pub(crate) version: Option<Arc<str>>,
    /// Of the canonical input schema: tells a parked task that its tool takes other arguments now.
    pub(crate) schema_hash: Fingerprint,
    pub(crate) guard: Option<Guard>,
    /// Whether arguments of it have to be in headers too (2026-07-28, "Custom Headers from Tool Parameters").
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "the fast path is over HTTP alone"))]
    pub(crate) has_header_params: bool,
    pub(crate) kind: ToolKind,
}

impl RegisteredTool {
    /// What the attribute allows, for the decision rule.
    pub(crate) fn support(&self) -> TaskSupport {
        match (self.kind, self.required) {
            (ToolKind::Tool, _) => TaskSupport::Never,
            (ToolKind::Task, false) => TaskSupport::Optional,
            (ToolKind::Task, true) => TaskSupport::Required,
        }
    }
}

impl fmt::Debug for RegisteredTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredTool")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("source", &self.descriptor.source())
            .finish_non_exhaustive()
    }
}

impl Registry {
    /// The tools by their names.
    pub(crate) const fn new(tools: BTreeMap<Arc<str>, Arc<RegisteredTool>>) -> Self {
        Self { tools }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<RegisteredTool>> {
        self.tools.get(name)
    }

    /// In the order of the names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<RegisteredTool>> {
        self.tools.values()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }
}
