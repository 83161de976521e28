//! `tools/list`: ours first, then the wrapped handler's.

use rmcp::model::{CacheScope, ListToolsResult, PaginatedRequestParams};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::TaskServer;
use super::request::is_stateless;
use crate::host::operations::ListTools;

impl<H: ServerHandler> TaskServer<H> {
    /// Our tools stand on the first page, in front of the wrapped handler's; its cursors are its own.
    pub(super) async fn list(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = self.caller(&context)?;
        let has_tasks = is_stateless(&context);
        let first_page = request.as_ref().is_none_or(|request| request.cursor.is_none());
        let mut result = if self.inner.get_info().capabilities.tools.is_some() {
            self.inner.list_tools(request, context).await?
        } else if first_page {
            ListToolsResult::default()
        } else {
            return Err(ErrorData::invalid_params("Invalid cursor", None));
        };
        let list = ListTools {
            caller,
            first_page,
            has_tasks,
        };
        let mut ours = self.operations.list(list).await;
        ours.tools.append(&mut result.tools);
        result.tools = ours.tools;
        if ours.is_private {
            result.cache_scope = Some(CacheScope::Private);
        }
        Ok(result)
    }
}
