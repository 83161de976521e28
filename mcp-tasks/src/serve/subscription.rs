//! `subscriptions/listen` with `taskIds` (Tasks extension, "Task Status Notifications"): its messages, on any transport.

use std::borrow::Cow;
use std::time::Duration;

use mcp_tasks_core::{TaskId, TaskRecord};
use rmcp::model::{Implementation, SubscriptionFilter};
use rmcp::{ErrorData, ServerHandler};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::message::{Id, Meta, Object, REVISION, Str};
use crate::Caller;
use crate::host::capabilities::CapabilitiesCache;
use crate::host::handler::TaskServer;
use crate::host::wire::TaskJson;
use crate::task::{ListenerEvent, TaskEngine, TaskListener};

/// The method that opens a subscription.
pub(super) const LISTEN: &str = "subscriptions/listen";

/// The notification that a subscription begins with.
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// After how long without a notification a stream is kept alive: as long as rmcp takes for its own streams.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The params of a request to listen.
#[derive(Debug, Deserialize)]
pub(super) struct Params<'a> {
    #[serde(rename = "_meta", borrow)]
    meta: Meta<'a>,
    #[serde(borrow)]
    notifications: &'a RawValue,
}

/// The part of a requested filter that names tasks. rmcp looks at the rest.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NotificationFilter<'a> {
    #[serde(default, borrow)]
    task_ids: Option<&'a RawValue>,
}

/// What a request to listen says of tasks.
#[derive(Debug)]
pub(super) enum TaskFilter<'a> {
    /// It names none, and is rmcp's.
    Absent,
    /// The ids it names.
    Tasks(Vec<Cow<'a, str>>),
    /// It has to be answered with this error.
    Refused(ErrorData),
}

#[derive(Deserialize)]
struct Ids<'a>(#[serde(borrow)] Vec<Str<'a>>);

impl<'a> Params<'a> {
    /// The tasks that are asked for.
    pub(super) fn task_filter(&self, capabilities: &CapabilitiesCache) -> TaskFilter<'a> {
        if self.meta.version != REVISION {
            return TaskFilter::Absent;
        }
        let filter = serde_json::from_str::<Object<NotificationFilter<'a>>>(self.notifications.get());
        let (Ok(Object(filter)), Some(declared)) = (filter, capabilities.read(self.meta.capabilities.get())) else {
            return TaskFilter::Absent;
        };
        let Some(ids) = filter.task_ids else {
            return TaskFilter::Absent;
        };
        if let Err(error) = declared.extension.require() {
            return TaskFilter::Refused(error);
        }
        match serde_json::from_str::<Ids<'a>>(ids.get()) {
            Ok(Ids(ids)) => TaskFilter::Tasks(ids.into_iter().map(|id| id.0).collect()),
            Err(_) => TaskFilter::Refused(ErrorData::invalid_params(
                "Invalid params: taskIds is a list of task ids",
                None,
            )),
        }
    }
}

impl Params<'_> {
    /// The rest of the filter, as far as `handler` serves it. It is what rmcp acknowledges.
    pub(super) fn handler_filter<H: ServerHandler>(&self, handler: &TaskServer<H>) -> Map<String, Value> {
        let Ok(requested) = serde_json::from_str::<SubscriptionFilter>(self.notifications.get()) else {
            return Map::new();
        };
        let Some(candidate) = handler.accepted_subscription_filter(&requested) else {
            return Map::new();
        };
        let advertised = requested.supported_by(&handler.get_info().capabilities);
        let accepted = requested.intersection(&candidate).intersection(&advertised);
        match serde_json::to_value(&accepted) {
            Ok(Value::Object(accepted)) => accepted,
            _ => Map::new(),
        }
    }
}

/// What a subscription sends next.
#[derive(Debug)]
pub(super) enum SubscriptionEvent {
    /// In one line.
    Notification(Vec<u8>),
    /// The response to the request to listen, which is the last message. In one line.
    Response(Vec<u8>),
    /// Nothing was sent for a while: streams that intermediaries may cut send a sign of life.
    KeepAlive,
}

/// An open subscription.
#[derive(Debug)]
pub(super) struct Subscription {
    listener: TaskListener,
    id: Id<'static>,
    /// The `_meta` of its notifications, which names it.
    meta: Box<RawValue>,
    server: Implementation,
    /// The part of the filter that the handler serves, acknowledged with ours.
    handler_filter: Map<String, Value>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Opened,
    Acknowledged,
    Closed,
}

#[derive(Serialize)]
struct Notification<'a, P> {
    jsonrpc: &'static str,
    method: &'static str,
    params: &'a P,
}

impl<'a, P> Notification<'a, P> {
    const fn new(method: &'static str, params: &'a P) -> Self {
        Self {
            jsonrpc: "2.0",
            method,
            params,
        }
    }
}

#[derive(Serialize)]
struct Acknowledged<'a> {
    #[serde(rename = "_meta")]
    meta: &'a RawValue,
    notifications: Map<String, Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Closed<'a> {
    result_type: &'static str,
    #[serde(rename = "_meta")]
    meta: ClosedMeta<'a>,
}

#[derive(Serialize)]
struct ClosedMeta<'a> {
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    id: &'a Id<'static>,
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    server: &'a Implementation,
}

#[derive(Serialize)]
struct SubscriptionMeta<'a> {
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    id: &'a Id<'static>,
}

impl Subscription {
    /// Begins to watch those of the tasks that exist and are the caller's.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn open(
        engine: &TaskEngine,
        id: Id<'static>,
        ids: &[Cow<'_, str>],
        caller: Caller,
        server: Implementation,
    ) -> Result<Self, ErrorData> {
        let listener = engine.listen(ids.iter().map(|id| &**id), caller).await?;
        let meta = to_raw_value(&SubscriptionMeta { id: &id }).map_err(|error| not_serializable(&error))?;
        Ok(Self {
            listener,
            id,
            meta,
            server,
            handler_filter: Map::new(),
            stage: Stage::Opened,
        })
    }

    /// Acknowledges this part of the filter too, which rmcp serves.
    pub(super) fn with_handler_filter(mut self, handler_filter: Map<String, Value>) -> Self {
        self.handler_filter = handler_filter;
        self
    }

    /// The next event, the acknowledgement first; `None` after the response.
    ///
    /// Not cancel safe.
    pub(super) async fn next(&mut self) -> Option<SubscriptionEvent> {
        loop {
            match self.stage {
                Stage::Opened => {
                    self.stage = Stage::Acknowledged;
                    return Some(SubscriptionEvent::Notification(self.acknowledgement()));
                }
                Stage::Closed => return None,
                Stage::Acknowledged => {}
            }
            match self.listener.next(KEEP_ALIVE).await {
                ListenerEvent::Changed(record) => match self.notification(&record) {
                    Ok(message) => return Some(SubscriptionEvent::Notification(message)),
                    // The log says why it cannot be shown; tasks/get has an error for it.
                    Err(_) => continue,
                },
                ListenerEvent::Idle => return Some(SubscriptionEvent::KeepAlive),
                ListenerEvent::Ended => return Some(SubscriptionEvent::Response(self.close())),
            }
        }
    }

    fn acknowledgement(&self) -> Vec<u8> {
        let granted = self.listener.granted().iter().map(TaskId::as_str);
        let mut notifications = self.handler_filter.clone();
        notifications.insert("taskIds".to_owned(), granted.collect());
        let params = Acknowledged {
            meta: &self.meta,
            notifications,
        };
        line(&Notification::new(ACKNOWLEDGED, &params))
    }

    fn notification(&self, record: &TaskRecord) -> Result<Vec<u8>, ErrorData> {
        let params = TaskJson::notified(record, &self.meta)?;
        let mut message = br#"{"jsonrpc":"2.0","method":"notifications/tasks","params":"#.to_vec();
        params.write(&mut message);
        message.push(b'}');
        Ok(in_one_line(message))
    }

    /// The response to the request to listen, which ends the subscription.
    pub(super) fn close(&mut self) -> Vec<u8> {
        self.stage = Stage::Closed;
        line(&Response {
            jsonrpc: "2.0",
            id: &self.id,
            result: Closed {
                result_type: "complete",
                meta: ClosedMeta {
                    id: &self.id,
                    server: &self.server,
                },
            },
        })
    }
}

#[derive(Serialize)]
struct Response<'a, T> {
    jsonrpc: &'static str,
    id: &'a Id<'static>,
    result: T,
}

#[cfg(feature = "stdio")]
#[derive(Serialize)]
struct Failure<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Id<'static>>,
    error: &'a ErrorData,
}

/// The response that refuses a request. Without a known id it has none (2026-07-28, "Error Responses").
#[cfg(feature = "stdio")]
pub(super) fn refusal(id: Option<&Id<'static>>, error: &ErrorData) -> Vec<u8> {
    line(&Failure {
        jsonrpc: "2.0",
        id,
        error,
    })
}

fn not_serializable(error: &serde_json::Error) -> ErrorData {
    tracing::error!(%error, "a subscription cannot be opened");
    ErrorData::internal_error("Internal error", None)
}

/// A message without line breaks, which end a message on both transports. In JSON they stand only between tokens, where a
/// blank means the same.
fn line(message: &impl Serialize) -> Vec<u8> {
    // Numbers, text, and JSON that is kept as text: they have a JSON form.
    in_one_line(serde_json::to_vec(message).unwrap_or_default())
}

fn in_one_line(mut line: Vec<u8>) -> Vec<u8> {
    for byte in &mut line {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    line
}
