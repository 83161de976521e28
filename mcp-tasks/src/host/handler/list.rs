//! `tools/list`: ours first, then the wrapped handler's.

use rmcp::model::{CacheScope, ListToolsResult, PaginatedRequestParams};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::TaskServer;
use crate::host::operations::ListTools;

impl<H: ServerHandler> TaskServer<H> {
    /// Our tools stand on the first page, in front of the wrapped handler's; its cursors are its own.
    pub(super) async fn list(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = self.caller(&context)?;
        let first_page = request.as_ref().is_none_or(|request| request.cursor.is_none());
        let mut result = if self.inner.get_info().capabilities.tools.is_some() {
            self.inner.list_tools(request, context).await?
        } else if first_page {
            ListToolsResult::default()
        } else {
            return Err(ErrorData::invalid_params("Invalid cursor", None));
        };
        let mut ours = self.operations.list(ListTools { caller, first_page }).await;
        ours.tools.append(&mut result.tools);
        result.tools = ours.tools;
        if ours.is_private {
            result.cache_scope = Some(CacheScope::Private);
        }
        Ok(result)
    }
}
