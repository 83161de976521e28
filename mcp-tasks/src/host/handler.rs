//! The rmcp handler that adds our tools and the Tasks extension to another: it decodes rmcp's types into operations, and
//! encodes what they answer.

use std::borrow::Cow;
use std::fmt;

use mcp_tasks_core::TaskSupport;
use rmcp::model::*;
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};

use crate::host::extension::{PROTOCOL_VERSION, REVISION};
use crate::host::operations::{Operations, answered};

mod call;
mod custom;
mod list;
mod request;
mod tasks;

/// An rmcp [`ServerHandler`] that answers for the tools and tasks of a [`TaskRuntime`](crate::TaskRuntime), and hands
/// everything else to the handler it wraps.
///
/// * `tools/list` shows our tools first, by name, then the pages of the wrapped handler.
/// * `tools/call` of one of ours follows the decision rule, [`decide`](mcp_tasks_core::decide); of any other name it
///   goes to the wrapped handler.
/// * `tasks/get`, `tasks/update` and `tasks/cancel` are answered for our tasks (Tasks extension, SEP-2663). Ids that
///   are unknown here go to the wrapped handler if it advertises tasks of its own.
/// * `subscriptions/listen` goes to the wrapped handler. Where it has none, a request is acknowledged with an empty
///   filter and ends at once. ([`Server`](crate::Server) serves `taskIds` in front of rmcp, which does not know
///   them.)
/// * `server/discover` advertises the extension besides what the wrapped handler advertises.
///
/// ```standalone_crate
/// use mcp_tasks::TaskRuntime;
/// use rmcp::ServerHandler;
///
/// #[derive(Clone)]
/// struct Mine;
/// impl ServerHandler for Mine {}
///
/// let runtime = TaskRuntime::builder().build()?;
/// let handler = runtime.wrap(Mine)?;
/// assert!(handler.get_info().capabilities.supports_tasks());
/// # Ok::<(), mcp_tasks::StartError>(())
/// ```
#[derive(Clone)]
pub struct TaskServer<H> {
    operations: Operations,
    inner: H,
}

impl<H: fmt::Debug> fmt::Debug for TaskServer<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskServer")
            .field("operations", &self.operations)
            .field("inner", &self.inner)
            .finish()
    }
}

/// The handler of a server that has nothing but our tools.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct NoHandler {
    pub(crate) info: Option<ServerConfig>,
}

impl ServerHandler for NoHandler {
    fn get_info(&self) -> ServerConfig {
        self.info.clone().unwrap_or_default()
    }
}

impl<H: ServerHandler> TaskServer<H> {
    pub(crate) const fn new(operations: Operations, inner: H) -> Self {
        Self { operations, inner }
    }

    /// The wrapped handler.
    pub const fn inner(&self) -> &H {
        &self.inner
    }

    /// What to warn of at the start: tools that no client can call through this handler.
    pub(crate) fn uncallable_tools(&self) -> Option<String> {
        if self.supported_protocol_versions().contains(&PROTOCOL_VERSION) {
            return None;
        }
        let registry = self.operations.engine().registry();
        let required = registry.iter().filter(|tool| tool.support() == TaskSupport::Required);
        let names: Vec<_> = required.map(|tool| &*tool.name).collect();
        (!names.is_empty()).then(|| {
            format!(
                "the wrapped handler does not speak {REVISION}, so no client can call the tools that run only as tasks: {}; \
                 add that revision to its `supported_protocol_versions`, or leave `required` out of their attributes",
                names.join(", ")
            )
        })
    }

    /// Adds our tools to what the wrapped handler advertises.
    fn with_tools(&self, capabilities: &mut ServerCapabilities) {
        if !self.operations.engine().registry().is_empty() {
            capabilities.tools.get_or_insert_default();
        }
    }

    /// Adds the extension, with settings that are an empty object exactly: published clients take any member for "no
    /// tasks".
    fn with_extension(capabilities: &mut ServerCapabilities) {
        capabilities
            .extensions
            .get_or_insert_default()
            .entry(TASKS_EXTENSION_ID.to_owned())
            .or_default();
    }
}

#[expect(deprecated, reason = "what the wrapped handler does for older clients is handed on")]
impl<H: ServerHandler> ServerHandler for TaskServer<H> {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.inner.get_info();
        self.with_tools(&mut info.capabilities);
        Self::with_extension(&mut info.capabilities);
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.inner.supported_protocol_versions()
    }

    /// A session of an older revision: our tools run inside its calls, and the extension is not advertised.
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let mut result = self.inner.initialize(request, context).await?;
        self.with_tools(&mut result.capabilities);
        Ok(result)
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let mut result = self.inner.discover(context).await?;
        self.with_tools(&mut result.capabilities);
        Self::with_extension(&mut result.capabilities);
        Ok(result)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        answered(self.list(request, context)).await
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        match self.operations.tool(name) {
            Some(tool) => Some(tool.model.clone()),
            None => self.inner.get_tool(name),
        }
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        answered(self.call(request, context)).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        answered(self.task_get(request, context)).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        answered(self.task_update(request, context)).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        answered(self.task_cancel(request, context)).await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        answered(self.custom(request, context)).await
    }

    /// The server has the method, also where the wrapped handler does not: what is not served is missing from the
    /// acknowledgement, and is no error (2026-07-28, "Subscriptions", "Acknowledgment"). Clients ask as soon as they
    /// are connected.
    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(self.inner.accepted_subscription_filter(requested).unwrap_or_default())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        if self.inner.accepted_subscription_filter(context.requested()).is_none() {
            // Nothing would ever be sent: it ends at once, so that no connection is held for it.
            return Ok(());
        }
        self.inner.listen(context).await
    }

    // From here on everything is the wrapped handler's.

    async fn ping(&self, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.inner.ping(context).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.inner.complete(request, context).await
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.inner.set_level(request, context).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.inner.get_prompt(request, context).await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.inner.list_prompts(request, context).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.inner.list_resources(request, context).await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.inner.list_resource_templates(request, context).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.inner.read_resource(request, context).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.inner.subscribe(request, context).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.inner.unsubscribe(request, context).await
    }

    async fn list_skills(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        self.inner.list_skills(request, context).await
    }

    async fn get_skill(
        &self,
        request: GetSkillRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        self.inner.get_skill(request, context).await
    }

    async fn read_resource_directory(
        &self,
        request: ReadResourceDirectoryRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceDirectoryResult, ErrorData> {
        self.inner.read_resource_directory(request, context).await
    }

    async fn on_cancelled(&self, notification: CancelledNotificationParam, context: NotificationContext<RoleServer>) {
        self.inner.on_cancelled(notification, context).await;
    }

    async fn on_progress(&self, notification: ProgressNotificationParam, context: NotificationContext<RoleServer>) {
        self.inner.on_progress(notification, context).await;
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.inner.on_initialized(context).await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        self.inner.on_roots_list_changed(context).await;
    }

    async fn on_custom_notification(&self, notification: CustomNotification, context: NotificationContext<RoleServer>) {
        self.inner.on_custom_notification(notification, context).await;
    }
}

#[cfg(test)]
mod tests {
    use crate::{TaskRuntime, mcp_task};

    use super::*;

    /// Runs only as a task.
    #[mcp_task(required)]
    async fn only_a_task() {}

    /// Runs either way.
    #[mcp_task]
    async fn either_way() {}

    struct Speaks(&'static [ProtocolVersion]);

    impl ServerHandler for Speaks {
        fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
            Cow::Borrowed(self.0)
        }
    }

    #[test]
    fn a_handler_that_cannot_serve_required_tools_is_warned_of() {
        let older = &[ProtocolVersion::V_2025_11_25];
        let both = &[ProtocolVersion::V_2026_07_28, ProtocolVersion::V_2025_11_25];
        let builder = || TaskRuntime::builder().without_inventory();
        let required = builder().register::<only_a_task>().build().unwrap();
        let optional = builder().register::<either_way>().build().unwrap();
        let warning = |runtime: &TaskRuntime, versions| runtime.wrap(Speaks(versions)).unwrap().uncallable_tools();
        assert!(warning(&required, older).is_some_and(|warning| warning.contains("only_a_task")));
        assert_eq!(warning(&required, both), None);
        assert_eq!(warning(&optional, older), None);
    }
}
