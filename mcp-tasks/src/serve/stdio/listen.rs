//! `subscriptions/listen` with `taskIds` on stdio: answered in front of rmcp, which knows no `taskIds`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::ErrorData;
use rmcp::model::Implementation;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::Caller;
use crate::engine::Engine;
use crate::serve::capabilities::Known;
use crate::serve::message::{Checked, Id, Object, decode};
use crate::serve::subscription::{LISTEN, Params, Said, Subscription, Wanted, refusal};
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
    /// What ends each of them without a word, as its client wants.
    open: Mutex<HashMap<Id<'static>, CancellationToken>>,
    /// Fires when the client says nothing more: they are closed then.
    over: CancellationToken,
}

impl fmt::Debug for Subscriptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriptions").finish_non_exhaustive()
    }
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
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                engine,
                server,
                known: Known::default(),
                lines,
                open: Mutex::default(),
                over,
            }),
        }
    }

    /// Whether the line is for us; it is taken care of then. The others are rmcp's.
    pub(super) fn take(&self, line: &[u8]) -> bool {
        let Ok(line) = std::str::from_utf8(line) else {
            return false;
        };
        // A look that costs nothing, for the many lines that are neither.
        if line.contains(LISTEN) && line.contains("taskIds") {
            return self.listen(line).is_some();
        }
        line.contains(CANCELLED) && self.cancel(line).is_some()
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Id<'static>, CancellationToken>> {
        self.shared.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listen(&self, line: &str) -> Option<()> {
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
        let id = request.id.into_owned();
        let this = self.clone();
        let cancelled = CancellationToken::new();
        let ids: Result<Vec<Cow<'static, str>>, ErrorData> = ids.and_then(|ids| match self.open().entry(id.clone()) {
            Entry::Vacant(place) => {
                place.insert(cancelled.clone());
                Ok(ids)
            }
            Entry::Occupied(_) => Err(ErrorData::invalid_request(
                "Invalid request: a subscription with this id is open",
                None,
            )),
        });
        tokio::spawn(async move {
            match ids {
                Ok(ids) => {
                    this.serve(id.clone(), &ids, cancelled).await;
                    this.open().remove(&id);
                }
                Err(error) => {
                    this.say(refusal(&id, &error)).await;
                }
            }
        });
        Some(())
    }

    /// Says what there is to say, until all is said or it is cancelled.
    async fn serve(&self, id: Id<'static>, ids: &[Cow<'static, str>], cancelled: CancellationToken) {
        let shared = &self.shared;
        let (caller, server) = (Caller::anonymous(), shared.server.clone());
        let opened = answered(Subscription::open(&shared.engine, id.clone(), ids, caller, server)).await;
        let mut subscription = match opened {
            Ok(subscription) => subscription,
            Err(error) => {
                self.say(refusal(&id, &error)).await;
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
                Some(Said::Message(message) | Said::Closed(message)) => {
                    tokio::select! {
                        biased;
                        () = cancelled.cancelled() => return,
                        is_said = self.say(message) => if !is_said { return },
                    }
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

    fn cancel(&self, line: &str) -> Option<()> {
        let Object(notification) = serde_json::from_str::<Object<Cancelled<'_>>>(line).ok()?;
        if notification.method != CANCELLED {
            return None;
        }
        let id = notification.params.request_id.into_owned();
        self.open().get(&id)?.cancel();
        Some(())
    }
}
