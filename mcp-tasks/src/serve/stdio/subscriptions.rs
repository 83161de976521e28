//! `subscriptions/listen` with `taskIds` on stdio: answered in front of rmcp, which knows no `taskIds`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{ClientNotification, GetMeta, Implementation, JsonRpcMessage, RequestId, ServerNotification};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::lines::MAX_LINE;
use crate::Caller;
use crate::host::task_server::answered;
use crate::serve::capabilities::Known;
use crate::serve::message::{Id, decode};
use crate::serve::subscription::{LISTEN, Params, Subscription, SubscriptionEvent, TaskFilter, refusal};
use crate::task::Engine;

/// How many subscriptions may be open at a time, those of rmcp and those that wait for the client to read included: as many
/// as the tasks that one of them may name, for clients that open one for each task.
const MAX_OPEN: usize = 1000;

/// How long the requests of the open subscriptions may be together, in bytes. What a subscription holds grows with its
/// request, and one of the longest may be open.
const MAX_REQUEST_BYTES: usize = MAX_LINE;

/// The subscriptions of the client.
pub(super) struct Subscriptions {
    engine: Engine,
    server: Implementation,
    known: Known,
    outgoing: mpsc::Sender<Vec<u8>>,
    open: Mutex<HashMap<Id<'static>, OpenSubscription>>,
    handler_filter: HandlerFilter,
    /// Fires when the input ends: the subscriptions are closed then.
    input_end: CancellationToken,
}

/// The part of a requested filter that the application's handler serves, through rmcp.
type HandlerFilter = Box<dyn Fn(&Params<'_>) -> Map<String, Value> + Send + Sync>;

struct OpenSubscription {
    /// The length of its request, in bytes.
    length: usize,
    /// Ends it without another message, as the client wants.
    cancelled: CancellationToken,
    /// Present where rmcp serves all of the filter, or the part that names no tasks, under the same id.
    rmcp_part: Option<RmcpPart>,
}

#[derive(Debug)]
enum RmcpPart {
    /// rmcp has not acknowledged its part yet. When it does, ours begins.
    Requested(oneshot::Sender<OnAcknowledged>),
    Acknowledged,
}

/// Dropped when our acknowledgement has been sent. It acknowledges rmcp's part too, and what rmcp sends in the subscription
/// waits for it.
type OnAcknowledged = oneshot::Sender<()>;

/// Where a message of the client's goes.
#[derive(Debug)]
pub(super) enum Route {
    Rmcp,
    /// It is taken care of here.
    Handled,
    /// This is the response, and nothing else comes of it.
    Refused(Vec<u8>),
}

impl fmt::Debug for Subscriptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriptions").finish_non_exhaustive()
    }
}

fn exceeded(what: &str, limit: usize) -> ErrorData {
    ErrorData::invalid_request(
        format!("Invalid request: too many {what} (at most {limit}); cancel one first"),
        None,
    )
}

/// Adds a subscription to those that are open.
///
/// # Errors
/// When there are too many, or its id is in use.
fn register(
    all: &mut HashMap<Id<'static>, OpenSubscription>,
    id: Id<'static>,
    open: OpenSubscription,
) -> Result<(), ErrorData> {
    let length: usize = all.values().map(|open| open.length).sum();
    if all.contains_key(&id) {
        Err(ErrorData::invalid_request(
            "Invalid request: a subscription with this id is open",
            None,
        ))
    } else if all.len() >= MAX_OPEN {
        Err(exceeded("subscriptions on this connection", MAX_OPEN))
    } else if length + open.length > MAX_REQUEST_BYTES {
        Err(exceeded(
            "bytes in the requests of the subscriptions on this connection",
            MAX_REQUEST_BYTES,
        ))
    } else {
        all.insert(id, open);
        Ok(())
    }
}

impl Subscriptions {
    /// None yet. Their messages go to `outgoing`, and `input_end` closes them all.
    pub(super) fn new(
        engine: Engine,
        server: Implementation,
        outgoing: mpsc::Sender<Vec<u8>>,
        input_end: CancellationToken,
        handler_filter: impl Fn(&Params<'_>) -> Map<String, Value> + Send + Sync + 'static,
    ) -> Self {
        Self {
            engine,
            server,
            known: Known::default(),
            outgoing,
            open: Mutex::default(),
            handler_filter: Box::new(handler_filter),
            input_end,
        }
    }

    /// Where a message of the client's goes. `line` is its text, which has the `taskIds` that rmcp leaves out.
    pub(super) fn route(self: &Arc<Self>, message: &RxJsonRpcMessage<RoleServer>, line: &[u8]) -> Route {
        match message {
            JsonRpcMessage::Request(request) if request.request.method() == LISTEN => {
                self.listen(line).unwrap_or(Route::Rmcp)
            }
            JsonRpcMessage::Notification(notification) => match &notification.notification {
                ClientNotification::CancelledNotification(cancelled) => {
                    self.cancel(cancelled.params.request_id.as_ref())
                }
                _ => Route::Rmcp,
            },
            _ => Route::Rmcp,
        }
    }

    /// Looks at a message of rmcp's. Its acknowledgement of a part of a filter is not sent, as ours acknowledges the whole:
    /// then this is what rmcp's further messages have to wait for.
    pub(super) fn inspect(&self, message: &TxJsonRpcMessage<RoleServer>) -> Option<oneshot::Receiver<()>> {
        let mut open = self.lock();
        match message {
            JsonRpcMessage::Response(response) => close(&mut open, &response.id),
            JsonRpcMessage::Error(error) => close(&mut open, error.id.as_ref()?),
            JsonRpcMessage::Notification(notification) => {
                let notification = &notification.notification;
                if matches!(
                    notification,
                    ServerNotification::SubscriptionsAcknowledgedNotification(_)
                ) {
                    let id = notification.get_meta().subscription_id()?;
                    let part = open.get_mut(&Id::from(&id))?.rmcp_part.as_mut()?;
                    if let RmcpPart::Requested(begin) = std::mem::replace(part, RmcpPart::Acknowledged) {
                        let (on_acknowledged, acknowledged) = oneshot::channel();
                        return begin.send(on_acknowledged).is_ok().then_some(acknowledged);
                    }
                }
            }
            JsonRpcMessage::Request(_) => {}
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Id<'static>, OpenSubscription>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listen(self: &Arc<Self>, line: &[u8]) -> Option<Route> {
        let text = str::from_utf8(line).ok()?;
        let request = decode::<Params<'_>>(text.strip_prefix('\u{feff}').unwrap_or(text))?;
        let id = request.id.into_owned();
        let ids: Option<Vec<Cow<'static, str>>> = match request.params.0.task_filter(&self.known) {
            TaskFilter::Absent => None,
            TaskFilter::Tasks(ids) => Some(ids.into_iter().map(Cow::into_owned).map(Cow::Owned).collect()),
            TaskFilter::Refused(error) => return Some(Route::Refused(refusal(Some(&id), &error))),
        };
        let handler_filter = (self.handler_filter)(&request.params.0);
        let is_ours = ids.is_some() && handler_filter.is_empty();
        let cancelled = CancellationToken::new();
        let (begin, begins) = oneshot::channel();
        let open = OpenSubscription {
            length: line.len(),
            cancelled: cancelled.clone(),
            rmcp_part: match ids {
                // rmcp acknowledges it and serves it: here it only counts.
                None => Some(RmcpPart::Acknowledged),
                Some(_) if is_ours => None,
                Some(_) => Some(RmcpPart::Requested(begin)),
            },
        };
        if let Err(error) = register(&mut self.lock(), id.clone(), open) {
            return Some(Route::Refused(refusal(Some(&id), &error)));
        }
        let ids = ids?;
        let this = self.clone();
        tokio::spawn(async move {
            if is_ours {
                this.run(id.clone(), ids, handler_filter, cancelled, None).await;
                this.lock().remove(&id);
            } else if let Ok(on_acknowledged) = begins.await {
                // rmcp's response ends it.
                this.run(id, ids, handler_filter, cancelled, Some(on_acknowledged))
                    .await;
            }
        });
        Some(if is_ours { Route::Handled } else { Route::Rmcp })
    }

    /// Sends the messages of a subscription until it ends or is cancelled.
    async fn run(
        &self,
        id: Id<'static>,
        ids: Vec<Cow<'static, str>>,
        handler_filter: Map<String, Value>,
        cancelled: CancellationToken,
        mut on_acknowledged: Option<OnAcknowledged>,
    ) {
        let is_shared = !handler_filter.is_empty();
        let (caller, server) = (Caller::anonymous(), self.server.clone());
        let opened = answered(Subscription::open(&self.engine, id.clone(), &ids, caller, server)).await;
        // There may be many that name no task.
        drop(ids);
        let mut subscription = match opened {
            Ok(subscription) => subscription.with_handler_filter(handler_filter),
            Err(error) => {
                let _ = self.outgoing.send(refusal(Some(&id), &error)).await;
                return;
            }
        };
        loop {
            let event = tokio::select! {
                biased;
                () = cancelled.cancelled() => return,
                event = subscription.next() => event,
                () = self.input_end.cancelled() => Some(SubscriptionEvent::Response(subscription.close())),
            };
            match event {
                // rmcp sends the response.
                Some(SubscriptionEvent::Response(_)) if is_shared => return,
                Some(SubscriptionEvent::Notification(message) | SubscriptionEvent::Response(message)) => {
                    tokio::select! {
                        biased;
                        () = cancelled.cancelled() => return,
                        sent = self.outgoing.send(message) => if sent.is_err() { return },
                    }
                    // The first message is the acknowledgement.
                    drop(on_acknowledged.take());
                }
                // A pipe does not need to be kept alive.
                Some(SubscriptionEvent::KeepAlive) => {}
                None => return,
            }
        }
    }

    fn cancel(&self, id: Option<&RequestId>) -> Route {
        let mut open = self.lock();
        let Some(Entry::Occupied(entry)) = id.map(|id| open.entry(id.into())) else {
            return Route::Rmcp;
        };
        entry.get().cancelled.cancel();
        if entry.get().rmcp_part.is_none() {
            return Route::Handled;
        }
        // Nothing more comes under this id, not even a response.
        entry.remove();
        Route::Rmcp
    }
}

/// Closes the subscription, if rmcp has a part in it, whose response this is.
fn close(open: &mut HashMap<Id<'static>, OpenSubscription>, id: &RequestId) {
    if let Entry::Occupied(entry) = open.entry(id.into())
        && entry.get().rmcp_part.is_some()
    {
        entry.remove().cancelled.cancel();
    }
}
