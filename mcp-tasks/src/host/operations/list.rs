//! `tools/list`: our tools, for one caller.

use mcp_tasks_core::TaskSupport;
use rmcp::model::Tool;

use super::Operations;
use crate::tool::caller::Caller;

/// A request for a page of the tools.
#[derive(Debug)]
pub(crate) struct ListTools {
    pub(crate) caller: Caller,
    pub(crate) first_page: bool,
    /// Whether a call in the revision of this request can become a task.
    pub(crate) has_tasks: bool,
}

/// Our part of a page.
#[derive(Debug)]
pub(crate) struct ListedTools {
    /// All of our tools stand on the first page, by name.
    pub(crate) tools: Vec<Tool>,
    /// Whether the listing is for this caller alone, as a guard had a say in it.
    pub(crate) is_private: bool,
}

impl Operations {
    /// Our tools without those whose guard denies the caller, and those that the caller could not call in this revision.
    pub(crate) async fn list(&self, request: ListTools) -> ListedTools {
        let registry = self.engine.registry();
        let mut tools = Vec::new();
        if request.first_page {
            for tool in registry.iter() {
                let is_callable = request.has_tasks || tool.support() != TaskSupport::Required;
                let is_allowed = match tool.guard {
                    Some(guard) if is_callable => guard(&request.caller).await.is_ok(),
                    _ => true,
                };
                if is_callable && is_allowed {
                    tools.push(tool.model.clone());
                }
            }
        }
        ListedTools {
            tools,
            is_private: registry.iter().any(|tool| tool.guard.is_some()),
        }
    }
}
