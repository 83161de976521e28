//! `tools/list`: our tools, for one caller.

use rmcp::model::Tool;

use super::Operations;
use crate::tool::caller::Caller;

/// A request for a page of the tools.
#[derive(Debug)]
pub(crate) struct ListTools {
    pub(crate) caller: Caller,
    pub(crate) first_page: bool,
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
    /// Our tools without those whose guard denies the caller.
    pub(crate) async fn list(&self, request: ListTools) -> ListedTools {
        let registry = self.engine.registry();
        let mut tools = Vec::new();
        if request.first_page {
            for tool in registry.iter() {
                let is_listed = match tool.guard {
                    Some(guard) => guard(&request.caller).await.is_ok(),
                    None => true,
                };
                if is_listed {
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
