//! `subscriptions/listen` with `taskIds` on stdio: answered in front of rmcp, which knows no `taskIds`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::ErrorData;
use rmcp::model::Implementation;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::json_line::JsonLine;
use super::lines::MAX_LINE;
use crate::Caller;
use crate::host::operations::{Operations, answered};
use crate::serve::message::{Id, Object, decode};
use crate::serve::subscription::{ACKNOWLEDGED, LISTEN, Params, Subscription, SubscriptionEvent, TaskFilter, refusal};

const CANCELLED: &str = "notifications/cancelled";

/// How many subscriptions may be open at a time, with those that wait for the client to read and those of rmcp: as many as the tasks that one
/// may name, for clients that open one for each task.
const MAX_OPEN: usize = 1000;

/// How long the requests of the open subscriptions may be together, in bytes. What a subscription holds grows with its
/// request, and one of the longest may be open.
const MAX_REQUEST_BYTES: usize = MAX_LINE;

/// The subscriptions of the one client; cloning shares them.
#[derive(Clone)]
pub(super) struct Subscriptions {
    state: Arc<State>,
}

struct State {
    operations: Operations,
    server: Implementation,
    lines: mpsc::Sender<Vec<u8>>,
    open: Mutex<HashMap<Id<'static>, OpenSubscription>>,
    /// What else of a filter the handler serves.
    handler_filter: HandlerFilter,
    /// Fires when the client says nothing more: they are closed then.
    over: CancellationToken,
}

/// Of the params of a request to listen.
type HandlerFilter = Box<dyn Fn(&Params<'_>) -> Map<String, Value> + Send + Sync>;

struct OpenSubscription {
    /// The length of its request, in bytes.
    length: usize,
    /// Ends it without a word, as its client wants.
    cancelled: CancellationToken,
    /// Where rmcp serves the rest of the filter under the same id. Until it has acknowledged that, it holds what lets us
    /// begin.
    rmcp_part: Option<RmcpPart>,
}

/// Goes when ours is acknowledged: what rmcp says in the subscription waits for that.
type OnAcknowledged = oneshot::Sender<()>;

/// What becomes of a line of the client's.
#[derive(Debug)]
pub(super) enum LineRoute {
    /// It is rmcp's.
    Rmcp,
    /// It is taken care of.
    Handled,
    /// This is the answer, and nothing else comes of it.
    Refused(Vec<u8>),
}

/// What becomes of a line of rmcp's.
#[derive(Debug)]
pub(super) enum RmcpLine {
    /// It goes out.
    Forward,
    /// It does not, and the lines after it wait for this.
    Withhold(oneshot::Receiver<()>),
}

#[derive(Debug)]
enum RmcpPart {
    Requested(oneshot::Sender<OnAcknowledged>),
    Acknowledged,
}

impl fmt::Debug for Subscriptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriptions").finish_non_exhaustive()
    }
}

/// A message of rmcp's, as far as it concerns subscriptions.
#[derive(Deserialize)]
struct RmcpMessage<'a> {
    #[serde(default, borrow)]
    id: Option<Id<'a>>,
    #[serde(default, borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    params: Option<RmcpParams<'a>>,
}

#[derive(Deserialize)]
struct RmcpParams<'a> {
    #[serde(rename = "_meta", default, borrow)]
    meta: Option<RmcpMeta<'a>>,
}

#[derive(Deserialize)]
struct RmcpMeta<'a> {
    #[serde(rename = "io.modelcontextprotocol/subscriptionId", default, borrow)]
    subscription: Option<Id<'a>>,
}

#[derive(Deserialize)]
struct Cancelled<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: CancelledParams<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CancelledParams<'a> {
    #[serde(borrow)]
    request_id: Id<'a>,
}

fn exceeded(what: &str, limit: usize) -> ErrorData {
    ErrorData::invalid_request(
        format!("Invalid request: too many {what} (at most {limit}); cancel one first"),
        None,
    )
}

/// Enters a subscription among those that are open.
///
/// # Errors
/// When there are too many, or its id is taken.
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
    /// None yet. What they say goes to `lines`, and `over` ends them all.
    pub(super) fn new(
        operations: Operations,
        server: Implementation,
        lines: mpsc::Sender<Vec<u8>>,
        over: CancellationToken,
        handler_filter: impl Fn(&Params<'_>) -> Map<String, Value> + Send + Sync + 'static,
    ) -> Self {
        Self {
            state: Arc::new(State {
                operations,
                server,
                lines,
                open: Mutex::default(),
                handler_filter: Box::new(handler_filter),
                over,
            }),
        }
    }

    /// Looks whether a line is for us.
    pub(super) fn route(&self, line: &JsonLine<'_>) -> LineRoute {
        match line.method.as_deref() {
            Some(LISTEN) => self.listen(line.text).unwrap_or(LineRoute::Rmcp),
            Some(CANCELLED) if self.cancel(line.text) == Some(true) => LineRoute::Handled,
            _ => LineRoute::Rmcp,
        }
    }

    /// What becomes of a line of rmcp's: its acknowledgement of a filter is kept where ours acknowledges the whole.
    pub(super) fn inspect(&self, line: &[u8]) -> RmcpLine {
        let mut open = self.lock();
        if open.values().all(|open| open.rmcp_part.is_none()) {
            return RmcpLine::Forward;
        }
        let Ok(answer) = serde_json::from_slice::<RmcpMessage<'_>>(line) else {
            return RmcpLine::Forward;
        };
        match (answer.id, answer.method) {
            // The response, which is the last that is said under this id.
            (Some(id), None) => {
                if let Entry::Occupied(entry) = open.entry(id.into_owned())
                    && entry.get().rmcp_part.is_some()
                {
                    entry.remove().cancelled.cancel();
                }
            }
            (_, Some(method)) if method == ACKNOWLEDGED => {
                let meta = answer.params.and_then(|params| params.meta);
                let id = meta.and_then(|meta| meta.subscription).map(Id::into_owned);
                if let Some(open) = id.and_then(|id| open.get_mut(&id))
                    && let Some(rmcp_part) = open.rmcp_part.take()
                {
                    open.rmcp_part = Some(RmcpPart::Acknowledged);
                    let (said, is_said) = oneshot::channel();
                    if let RmcpPart::Requested(begin) = rmcp_part
                        && begin.send(said).is_ok()
                    {
                        return RmcpLine::Withhold(is_said);
                    }
                }
            }
            _ => {}
        }
        RmcpLine::Forward
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Id<'static>, OpenSubscription>> {
        self.state.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listen(&self, line: &str) -> Option<LineRoute> {
        let request = decode::<Params<'_>>(line)?;
        let id = request.id.into_owned();
        let ids: Option<Vec<Cow<'static, str>>> =
            match request.params.0.task_filter(self.state.operations.capabilities()) {
                TaskFilter::Absent => None,
                TaskFilter::Tasks(ids) => Some(ids.into_iter().map(Cow::into_owned).map(Cow::Owned).collect()),
                TaskFilter::Refused(error) => return Some(LineRoute::Refused(refusal(Some(&id), &error))),
            };
        let handler_filter = (self.state.handler_filter)(&request.params.0);
        let is_ours = ids.is_some() && handler_filter.is_empty();
        let cancelled = CancellationToken::new();
        let (begin, begins) = oneshot::channel();
        let open = OpenSubscription {
            length: line.len(),
            cancelled: cancelled.clone(),
            rmcp_part: match ids {
                // All of it is rmcp's: we do but count it.
                None => Some(RmcpPart::Acknowledged),
                Some(_) if is_ours => None,
                Some(_) => Some(RmcpPart::Requested(begin)),
            },
        };
        if let Err(error) = register(&mut self.lock(), id.clone(), open) {
            return Some(LineRoute::Refused(refusal(Some(&id), &error)));
        }
        let Some(ids) = ids else {
            return Some(LineRoute::Rmcp);
        };
        let this = self.clone();
        tokio::spawn(async move {
            if is_ours {
                this.run(id.clone(), ids, handler_filter, cancelled, None).await;
                this.lock().remove(&id);
            } else if let Ok(said) = begins.await {
                // rmcp's part ends it.
                this.run(id, ids, handler_filter, cancelled, Some(said)).await;
            }
        });
        Some(if is_ours { LineRoute::Handled } else { LineRoute::Rmcp })
    }

    /// Says what there is to say, until all is said or it is cancelled.
    async fn run(
        &self,
        id: Id<'static>,
        ids: Vec<Cow<'static, str>>,
        handler_filter: Map<String, Value>,
        cancelled: CancellationToken,
        mut acknowledged: Option<OnAcknowledged>,
    ) {
        let state = &self.state;
        let is_shared = !handler_filter.is_empty();
        let (caller, server) = (Caller::anonymous(), state.server.clone());
        let opened = answered(Subscription::open(
            state.operations.engine(),
            id.clone(),
            &ids,
            caller,
            server,
        ))
        .await;
        // There may be many that name no task.
        drop(ids);
        let mut subscription = match opened {
            Ok(subscription) => subscription.with_handler_filter(handler_filter),
            Err(error) => {
                self.send(refusal(Some(&id), &error)).await;
                return;
            }
        };
        loop {
            let said = tokio::select! {
                biased;
                () = cancelled.cancelled() => return,
                said = subscription.next() => said,
                () = state.over.cancelled() => Some(SubscriptionEvent::Response(subscription.close())),
            };
            match said {
                // It is rmcp that says when all is over.
                Some(SubscriptionEvent::Response(_)) if is_shared => return,
                Some(SubscriptionEvent::Notification(message) | SubscriptionEvent::Response(message)) => {
                    tokio::select! {
                        biased;
                        () = cancelled.cancelled() => return,
                        is_said = self.send(message) => if !is_said { return },
                    }
                    // The first message is the acknowledgement.
                    drop(acknowledged.take());
                }
                // A pipe needs no signs of life.
                Some(SubscriptionEvent::KeepAlive) => {}
                None => return,
            }
        }
    }

    /// Whether the line could be handed over.
    async fn send(&self, mut message: Vec<u8>) -> bool {
        message.push(b'\n');
        self.state.lines.send(message).await.is_ok()
    }

    /// Whether rmcp has no part in what is cancelled.
    fn cancel(&self, line: &str) -> Option<bool> {
        let Object(notification) = serde_json::from_str::<Object<Cancelled<'_>>>(line).ok()?;
        if notification.method != CANCELLED {
            return None;
        }
        let id = notification.params.request_id.into_owned();
        let mut open = self.lock();
        let Entry::Occupied(entry) = open.entry(id) else {
            return None;
        };
        entry.get().cancelled.cancel();
        let is_ours = entry.get().rmcp_part.is_none();
        if !is_ours {
            // Nothing more comes under this id, not even a response.
            entry.remove();
        }
        Some(is_ours)
    }
}
