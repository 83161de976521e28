//! `tools/list`: ours first, then the wrapped handler's.

use rmcp::model::{CacheScope, ListToolsResult, PaginatedRequestParams};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::TaskServer;

impl<H: ServerHandler> TaskServer<H> {
    /// Our tools stand on the first page, in front of the wrapped handler's; its cursors are its own. A tool whose guard
    /// denies this caller is not listed, and with any guard a listing is private to its caller.
    pub(super) async fn list(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = self.caller(&context);
        let first_page = request.as_ref().is_none_or(|request| request.cursor.is_none());
        let mut result = if self.inner.get_info().capabilities.tools.is_some() {
            self.inner.list_tools(request, context).await?
        } else if first_page {
            ListToolsResult::default()
        } else {
            return Err(ErrorData::invalid_params("Invalid cursor", None));
        };
        let registry = self.runtime.engine.registry();
        if first_page {
            let mut tools = Vec::new();
            for tool in registry.iter() {
                let listed = match tool.guard {
                    Some(guard) => guard(&caller).await.is_ok(),
                    None => true,
                };
                if listed {
                    tools.push(tool.model.clone());
                }
            }
            tools.append(&mut result.tools);
            result.tools = tools;
        }
        if registry.iter().any(|tool| tool.guard.is_some()) {
            result.cache_scope = Some(CacheScope::Private);
        }
        Ok(result)
    }
}
