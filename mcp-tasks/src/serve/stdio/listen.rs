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

use crate::Caller;
use crate::engine::Engine;
use crate::serve::capabilities::Known;
use crate::serve::message::{Checked, Id, Object, decode};
use crate::serve::subscription::{ACKNOWLEDGED, LISTEN, Params, Said, Subscription, Wanted, refusal};
use crate::task_server::answered;

const CANCELLED: &str = "notifications/cancelled";

/// The subscriptions of the one client; cloning shares them.
#[derive(Clone)]
pub(super) struct Subscriptions {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Engine,
    server: Implementation,
    known: Known,
    lines: mpsc::Sender<Vec<u8>>,
    open: Mutex<HashMap<Id<'static>, Open>>,
    /// What else of a filter the handler serves.
    others: Others,
    /// Fires when the client says nothing more: they are closed then.
    over: CancellationToken,
}

/// Of the params of a request to listen.
type Others = Box<dyn Fn(&Params<'_>) -> Map<String, Value> + Send + Sync>;

struct Open {
    /// Ends it without a word, as its client wants.
    cancelled: CancellationToken,
    /// Where rmcp serves the rest of the filter under the same id. Until it has acknowledged that, it holds what lets us
    /// begin.
    theirs: Option<Theirs>,
}

/// Goes when ours is acknowledged: what rmcp says in the subscription waits for that.
type Acknowledged = oneshot::Sender<()>;

/// What becomes of a line of rmcp's.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It goes out.
    Out,
    /// It does not, and the lines after it wait for this.
    Kept(oneshot::Receiver<()>),
}

#[derive(Debug)]
enum Theirs {
    Asked(oneshot::Sender<Acknowledged>),
    Acknowledged,
}

impl fmt::Debug for Subscriptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriptions").finish_non_exhaustive()
    }
}

/// A message of rmcp's, as far as it concerns subscriptions.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(default, borrow)]
    id: Option<Id<'a>>,
    #[serde(default, borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    params: Option<AnswerParams<'a>>,
}

#[derive(Deserialize)]
struct AnswerParams<'a> {
    #[serde(rename = "_meta", default, borrow)]
    meta: Option<AnswerMeta<'a>>,
}

#[derive(Deserialize)]
struct AnswerMeta<'a> {
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

impl Subscriptions {
    /// None yet. What they say goes to `lines`, and `over` ends them all.
    pub(super) fn new(
        engine: Engine,
        server: Implementation,
        lines: mpsc::Sender<Vec<u8>>,
        over: CancellationToken,
        others: impl Fn(&Params<'_>) -> Map<String, Value> + Send + Sync + 'static,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                engine,
                server,
                known: Known::default(),
                lines,
                open: Mutex::default(),
                others: Box::new(others),
                over,
            }),
        }
    }

    /// Whether the line is for us; it is taken care of then. The others are rmcp's.
    pub(super) fn take(&self, line: &[u8]) -> bool {
        let Ok(line) = std::str::from_utf8(line) else {
            return false;
        };
        // A look that costs nothing, for the many lines that are neither. Some clients write a slash as `\/`.
        if line.contains("taskIds") && line.contains("listen") {
            return self.listen(line) == Some(true);
        }
        line.contains("cancelled") && self.cancel(line) == Some(true)
    }

    /// What becomes of a line of rmcp's: its acknowledgement of a filter is kept where ours acknowledges the whole.
    pub(super) fn judge(&self, line: &[u8]) -> Verdict {
        let mut open = self.open();
        if open.values().all(|open| open.theirs.is_none()) {
            return Verdict::Out;
        }
        let Ok(answer) = serde_json::from_slice::<Answer<'_>>(line) else {
            return Verdict::Out;
        };
        match (answer.id, answer.method) {
            // The response, which is the last that is said under this id.
            (Some(id), None) => {
                if let Entry::Occupied(place) = open.entry(id.into_owned())
                    && place.get().theirs.is_some()
                {
                    place.remove().cancelled.cancel();
                }
            }
            (_, Some(method)) if method == ACKNOWLEDGED => {
                let meta = answer.params.and_then(|params| params.meta);
                let id = meta.and_then(|meta| meta.subscription).map(Id::into_owned);
                if let Some(open) = id.and_then(|id| open.get_mut(&id))
                    && let Some(theirs) = open.theirs.take()
                {
                    open.theirs = Some(Theirs::Acknowledged);
                    let (said, is_said) = oneshot::channel();
                    if let Theirs::Asked(begin) = theirs
                        && begin.send(said).is_ok()
                    {
                        return Verdict::Kept(is_said);
                    }
                }
            }
            _ => {}
        }
        Verdict::Out
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Id<'static>, Open>> {
        self.shared.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether rmcp has no part in it.
    fn listen(&self, line: &str) -> Option<bool> {
        // What is not looked at here has to be in order too.
        serde_json::from_str::<Checked>(line).ok()?;
        let request = decode::<Params<'_>>(line)?;
        if request.method != LISTEN {
            return None;
        }
        let ids = match request.params.0.wanted(&self.shared.known) {
            Wanted::Nothing => return None,
            Wanted::Tasks(ids) => Ok(ids.into_iter().map(Cow::into_owned).map(Cow::Owned).collect()),
            Wanted::Refused(error) => Err(error),
        };
        let others = (self.shared.others)(&request.params.0);
        let id = request.id.into_owned();
        let this = self.clone();
        let cancelled = CancellationToken::new();
        let (begin, begins) = oneshot::channel();
        let theirs = (!others.is_empty()).then_some(Theirs::Asked(begin));
        let is_ours = theirs.is_none() || ids.is_err();
        let ids: Result<Vec<Cow<'static, str>>, ErrorData> = ids.and_then(|ids| match self.open().entry(id.clone()) {
            Entry::Vacant(place) => {
                let cancelled = cancelled.clone();
                place.insert(Open { cancelled, theirs });
                Ok(ids)
            }
            Entry::Occupied(_) => Err(ErrorData::invalid_request(
                "Invalid request: a subscription with this id is open",
                None,
            )),
        });
        let is_ours = is_ours || ids.is_err();
        tokio::spawn(async move {
            match ids {
                Ok(ids) if is_ours => {
                    this.serve(id.clone(), &ids, others, cancelled, None).await;
                    this.open().remove(&id);
                }
                // rmcp's part ends it.
                Ok(ids) => {
                    if let Ok(said) = begins.await {
                        this.serve(id, &ids, others, cancelled, Some(said)).await;
                    }
                }
                Err(error) => {
                    this.say(refusal(Some(&id), &error)).await;
                }
            }
        });
        Some(is_ours)
    }

    /// Says what there is to say, until all is said or it is cancelled.
    async fn serve(
        &self,
        id: Id<'static>,
        ids: &[Cow<'static, str>],
        others: Map<String, Value>,
        cancelled: CancellationToken,
        mut acknowledged: Option<Acknowledged>,
    ) {
        let shared = &self.shared;
        let is_shared = !others.is_empty();
        let (caller, server) = (Caller::anonymous(), shared.server.clone());
        let opened = answered(Subscription::open(&shared.engine, id.clone(), ids, caller, server)).await;
        let mut subscription = match opened {
            Ok(subscription) => subscription.beside(others),
            Err(error) => {
                self.say(refusal(Some(&id), &error)).await;
                return;
            }
        };
        loop {
            let said = tokio::select! {
                biased;
                () = cancelled.cancelled() => return,
                said = subscription.next() => said,
                () = shared.over.cancelled() => Some(Said::Closed(subscription.close())),
            };
            match said {
                // It is rmcp that says when all is over.
                Some(Said::Closed(_)) if is_shared => return,
                Some(Said::Message(message) | Said::Closed(message)) => {
                    tokio::select! {
                        biased;
                        () = cancelled.cancelled() => return,
                        is_said = self.say(message) => if !is_said { return },
                    }
                    // The first message is the acknowledgement.
                    drop(acknowledged.take());
                }
                // A pipe needs no signs of life.
                Some(Said::Quiet) => {}
                None => return,
            }
        }
    }

    /// Whether the line could be handed over.
    async fn say(&self, mut message: Vec<u8>) -> bool {
        message.push(b'\n');
        self.shared.lines.send(message).await.is_ok()
    }

    /// Whether rmcp has no part in what is cancelled.
    fn cancel(&self, line: &str) -> Option<bool> {
        let Object(notification) = serde_json::from_str::<Object<Cancelled<'_>>>(line).ok()?;
        if notification.method != CANCELLED {
            return None;
        }
        let id = notification.params.request_id.into_owned();
        let mut open = self.open();
        let Entry::Occupied(place) = open.entry(id) else {
            return None;
        };
        place.get().cancelled.cancel();
        let is_ours = place.get().theirs.is_none();
        if !is_ours {
            // Nothing more comes under this id, not even a response.
            place.remove();
        }
        Some(is_ours)
    }
}
