//! The rmcp handler behind every prompt, resource and plain tool of the conformance server.

#![expect(
    deprecated,
    reason = "log levels and resources/subscribe are deprecated, and still part of 2025-11-25"
)]

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use rmcp::{
    RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, ErrorData,
        GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, LoggingLevel, PaginatedRequestParams, ReadResourceRequestParams,
        ReadResourceResponse, ServerCapabilities, ServerConfig, SetLevelRequestMethod, SetLevelRequestParams,
        SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};

use crate::{
    changes::Changes,
    prompts,
    questions::{self, Call, Stop},
    resources, tools,
};

/// Everything that the suite's scenarios ask of prompts, resources and plain tools.
#[derive(Clone)]
pub(crate) struct Fixtures {
    changes: Arc<Changes>,
    session: Arc<Session>,
}

impl Fixtures {
    /// A server without sessions.
    pub(crate) fn new() -> Self {
        Self {
            changes: Arc::new(Changes::new()),
            session: Arc::default(),
        }
    }

    /// The same server for another session or request.
    pub(crate) fn session(&self) -> Self {
        Self {
            session: Arc::default(),
            ..self.clone()
        }
    }

    /// Lists that change.
    pub(crate) fn changes(&self) -> &Changes {
        &self.changes
    }

    /// What this session of 2025-11-25 has set.
    pub(crate) fn session_state(&self) -> &Session {
        &self.session
    }
}

/// What one session of 2025-11-25 has set.
pub(crate) struct Session {
    level: Mutex<LoggingLevel>,
    watched: Mutex<BTreeSet<String>>,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            level: Mutex::new(LoggingLevel::Info),
            watched: Mutex::default(),
        }
    }
}

impl Session {
    /// The lowest level of log messages that the client wants.
    pub(crate) fn level(&self) -> LoggingLevel {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the client subscribed to the resource.
    pub(crate) fn watches(&self, uri: &str) -> bool {
        self.watched
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(uri)
    }
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("mcp-tasks-conformance", env!("CARGO_PKG_VERSION")))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.changes.forward(context.peer, Arc::downgrade(&self.session));
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        prompts::complete(&request)
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if questions::in_rounds(&context) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        *self.session.level.lock().unwrap_or_else(PoisonError::into_inner) = request.level;
        Ok(())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(prompts::list(&self.changes))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let call = Call::new(self, request.arguments, request.input_responses, context);
        Stop::of_prompt(prompts::get(&request.name, &call).await)
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(resources::list())
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&request.uri, &self.changes).map(Into::into)
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.changes.listen(context).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let mut watched = self.session.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.insert(request.uri);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let mut watched = self.session.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.remove(&request.uri);
        Ok(())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::list(&self.changes)))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::list(&self.changes).into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let call = Call::new(self, request.arguments, request.input_responses, context);
        tools::call(&request.name, &call).await
    }
}
