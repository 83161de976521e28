//! What the server sends by itself: progress of calls, and the requests of older revisions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{
    ClientConfig, ElicitRequestParams, ElicitResult, ErrorCode, ProgressNotificationParam, ProgressToken,
};
#[expect(deprecated, reason = "servers of older revisions still ask for them")]
use rmcp::model::{CreateMessageRequestParams, CreateMessageResult, ListRootsResult};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};

use super::{InputError, InputRequest, InputSupport};

/// The progress of calls, by their tokens.
#[derive(Debug, Default)]
pub(super) struct ProgressRoutes {
    routes: Mutex<HashMap<ProgressToken, mpsc::Sender<ProgressNotificationParam>>>,
}

impl ProgressRoutes {
    fn routes(&self) -> MutexGuard<'_, HashMap<ProgressToken, mpsc::Sender<ProgressNotificationParam>>> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The route of one call, until it is dropped.
pub(super) struct ProgressRoute<'p> {
    progress: &'p ProgressRoutes,
    token: ProgressToken,
}

impl<'p> ProgressRoute<'p> {
    /// Sends the progress under `token` to `reports`.
    pub(super) fn open(
        progress: &'p ProgressRoutes,
        token: ProgressToken,
        reports: mpsc::Sender<ProgressNotificationParam>,
    ) -> Self {
        progress.routes().insert(token.clone(), reports);
        Self { progress, token }
    }
}

impl Drop for ProgressRoute<'_> {
    fn drop(&mut self) {
        self.progress.routes().remove(&self.token);
    }
}

/// How many requests of a server may wait until those before them are answered. A tool that asks several things at once asks
/// a few; a server that asks without an end is to fill no memory.
const MAX_PENDING_REQUESTS: usize = 64;

/// The client that rmcp sees: it answers the requests of servers of older revisions.
#[derive(Debug)]
pub(super) struct ConnectionHandler {
    input_support: InputSupport,
    config: ClientConfig,
    progress: Arc<ProgressRoutes>,
    /// Held by the request that is being answered.
    turn: tokio::sync::Mutex<()>,
    /// One for each request that waits or is being answered.
    permits: Semaphore,
}

impl ConnectionHandler {
    pub(super) fn new(input_support: InputSupport, config: ClientConfig, progress: Arc<ProgressRoutes>) -> Self {
        Self {
            input_support,
            config,
            progress,
            turn: tokio::sync::Mutex::default(),
            permits: Semaphore::new(MAX_PENDING_REQUESTS + 1),
        }
    }

    async fn answer<T: DeserializeOwned>(&self, method: &str, params: Value) -> Result<T, ErrorData> {
        let Ok(_permit) = self.permits.try_acquire() else {
            let words = format!("{MAX_PENDING_REQUESTS} requests wait for an answer already");
            return Err(ErrorData::internal_error(words, None));
        };
        let _turn = self.turn.lock().await;
        let request = InputRequest::decode(method, &json!({"method": method, "params": params}));
        let unsupported = || ErrorData::new(ErrorCode::METHOD_NOT_FOUND, InputError::NotSupported.to_string(), None);
        let answer = self.input_support.answer(&request).ok_or_else(unsupported)?;
        let answer = answer.await.map_err(|error| match error {
            InputError::NotSupported => unsupported(),
            InputError::Later(reason) => ErrorData::internal_error(reason, None),
        })?;
        serde_json::from_value(answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }
}

#[expect(deprecated, reason = "servers of older revisions still ask for them")]
impl ClientHandler for ConnectionHandler {
    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let params = serde_json::to_value(params).unwrap_or_default();
        self.answer("elicitation/create", params).await
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let params = serde_json::to_value(params).unwrap_or_default();
        self.answer("sampling/createMessage", params).await
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        self.answer("roots/list", json!({})).await
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let route = self.progress.routes().get(&params.progress_token).cloned();
        if let Some(route) = route {
            // A report that is dropped is followed by a newer one.
            let _ = route.try_send(params);
        }
    }

    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }
}
