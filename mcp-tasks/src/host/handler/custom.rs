//! Requests that rmcp could not decode.

use rmcp::model::{CustomRequest, CustomResult, ErrorCode};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::TaskServer;
use super::request::{extension, is_stateless};

impl<H: ServerHandler> TaskServer<H> {
    /// A known method whose params do not decode arrives here as a custom request. It is `-32602`, after the extension's
    /// gate where there is one, and never `-32601`; the methods that the extension removed are `-32601`.
    pub(super) async fn custom(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let capabilities = self.inner.get_info().capabilities;
        let known = match request.method.as_str() {
            "tasks/get" | "tasks/update" | "tasks/cancel" => {
                extension(&context).require()?;
                true
            }
            "tasks/list" | "tasks/result" => {
                let message = format!(
                    "{} does not exist in the Tasks extension; look at one task with tasks/get",
                    request.method
                );
                return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None));
            }
            "tools/call" | "tools/list" | "server/discover" => true,
            // Revisions with sessions do not have it.
            "subscriptions/listen" => is_stateless(&context),
            "prompts/get" | "prompts/list" => capabilities.prompts.is_some(),
            "resources/read" | "resources/list" | "resources/templates/list" => capabilities.resources.is_some(),
            "completion/complete" => capabilities.completions.is_some(),
            _ => false,
        };
        if known {
            let message = format!("Invalid params: they are not what {} takes", request.method);
            return Err(ErrorData::invalid_params(message, None));
        }
        let method = request.method.clone();
        let answer = self.inner.on_custom_request(request, context).await;
        answer.map_err(|mut error| {
            // rmcp's own words are the bare name.
            if error.code == ErrorCode::METHOD_NOT_FOUND && error.message == method {
                error.message = format!("Method not found: {method}").into();
            }
            error
        })
    }
}
