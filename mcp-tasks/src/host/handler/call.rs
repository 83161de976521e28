//! `tools/call`, in rmcp's types.

use rmcp::model::{CallToolRequestParams, CallToolResponse};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::TaskServer;
use super::request::{extension, is_stateless};
use crate::call::Channel;
use crate::host::operations::{CallTool, unknown_tool};
use crate::host::wire;

impl<H: ServerHandler> TaskServer<H> {
    pub(super) async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.operations.tool(&request.name) else {
            if self.inner.get_info().capabilities.tools.is_some() {
                return self.inner.call_tool(request, context).await;
            }
            return Err(unknown_tool(&request.name));
        };
        let channel = if is_stateless(&context) {
            Channel::Rounds {
                state: request.request_state,
                responses: wire::responses(&request.input_responses.unwrap_or_default()),
            }
        } else {
            Channel::Session(context.peer.clone())
        };
        let progress = context
            .meta
            .get_progress_token()
            .map(|token| (context.peer.clone(), token));
        let call = CallTool {
            tool: tool.clone(),
            arguments: request.arguments.unwrap_or_default(),
            client: self.client(&context)?,
            extension: extension(&context),
            channel,
            progress,
            gone: context.ct.clone(),
        };
        wire::call_response(self.operations.call(call).await?)
    }
}
