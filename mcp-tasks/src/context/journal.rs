//! Calls whose results are journaled without a question: the clock, random bytes, sleeps, client capabilities, the point of
//! deferral.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use mcp_tasks_core::{EntryKind, Fingerprint, InputKind, Json, Looked, Slept, Timestamp};
use rmcp::ErrorData;
use serde::de::DeserializeOwned;

use crate::run::clock::Timer;
use crate::run::{Deferral, Run};
use crate::tool::error::ToolError;

/// One such call: its ordinal and what it records.
struct JournaledCall {
    run: Arc<Run>,
    ordinal: Option<u32>,
    kind: EntryKind,
    fingerprint: Fingerprint,
}

impl Drop for JournaledCall {
    fn drop(&mut self) {
        if let Some(ordinal) = self.ordinal {
            self.run.wakers.stop_waiting(ordinal);
            if self.kind == EntryKind::Sleep {
                self.run.wakers.stop_waiting_until(ordinal);
            }
        }
    }
}

impl JournaledCall {
    fn new(run: Arc<Run>, kind: EntryKind) -> Self {
        let ordinal = run.take_ordinal();
        Self {
            run,
            ordinal,
            kind,
            fingerprint: Fingerprint::of(kind.as_str(), "", None),
        }
    }

    fn ordinal(&self) -> Result<u32, ToolError> {
        self.ordinal.filter(|_| self.run.is_polling()).ok_or_else(|| {
            ToolError::new(
                "a call on the context was made outside the tool's own future (inside a step, in a spawned task, or after \
                 the tool returned); make it in the function itself, or with join!",
            )
        })
    }

    /// The recorded response, or what `make` says now, once something new may start.
    async fn recorded(&self, make: impl Fn() -> Json) -> Result<Json, ToolError> {
        poll_fn(|cx| {
            let ordinal = self.ordinal()?;
            let looked = self
                .run
                .cursor()
                .record(ordinal, self.kind, "", self.fingerprint, &make);
            match looked {
                Looked::Delivered { response, .. } => {
                    self.run.wakers.stop_waiting(ordinal);
                    self.run.wakers.wake_waiting();
                    Poll::Ready(Ok(response))
                }
                _ => {
                    self.run.wakers.wait(ordinal, cx.waker());
                    Poll::Pending
                }
            }
        })
        .await
    }

    async fn decoded<T: DeserializeOwned>(&self, make: impl Fn() -> Json) -> Result<T, ToolError> {
        self.recorded(make).await?.decode().map_err(|error| {
            let message = format!("the recorded {} cannot be read: {error}", self.kind.as_str());
            ToolError::protocol(ErrorData::internal_error(message, None))
        })
    }
}

pub(super) fn now(run: Arc<Run>) -> impl Future<Output = Result<SystemTime, ToolError>> + Send + use<> {
    let call = JournaledCall::new(run, EntryKind::Now);
    async move {
        let now: Timestamp = call.decoded(|| json_of(&call.run.now())).await?;
        Ok(SystemTime::from(now))
    }
}

pub(super) fn random<const N: usize>(
    run: Arc<Run>,
) -> impl Future<Output = Result<[u8; N], ToolError>> + Send + use<N> {
    let call = JournaledCall::new(run, EntryKind::Random);
    async move {
        let mut fresh = [0; N];
        getrandom::fill(&mut fresh).map_err(|error| {
            ToolError::protocol(ErrorData::internal_error(
                format!("the random generator fails: {error}"),
                None,
            ))
        })?;
        let recorded: Vec<u8> = call.decoded(|| json_of(fresh.as_slice())).await?;
        recorded.try_into().map_err(|recorded: Vec<u8>| {
            let message = format!(
                "{} random bytes were recorded here, and {N} are asked for now",
                recorded.len()
            );
            ToolError::protocol(ErrorData::invalid_params(message, None))
        })
    }
}

pub(super) fn sleep(run: Arc<Run>, duration: Duration) -> impl Future<Output = Result<(), ToolError>> + Send + use<> {
    let call = JournaledCall::new(run, EntryKind::Sleep);
    async move {
        let mut timer: Option<(Timestamp, Timer)> = None;
        let timer_waker = call.run.wakers.timer_waker();
        poll_fn(|cx| {
            let ordinal = call.ordinal()?;
            call.run.wakers.stop_waiting_until(ordinal);
            loop {
                let now = call.run.now();
                let wake = now.saturating_add(duration);
                let slept = call.run.cursor().sleep(ordinal, call.fingerprint, wake, now);
                match slept {
                    Slept::Over => {
                        call.run.wakers.stop_waiting(ordinal);
                        call.run.wakers.wake_waiting();
                        return Poll::Ready(Ok(()));
                    }
                    Slept::Until(wake) => {
                        let (_, until) = match timer.take_if(|(at, _)| *at == wake) {
                            Some(same) => timer.insert(same),
                            None => timer.insert((wake, call.run.timer(wake))),
                        };
                        // The run is woken too when it goes on, because the wait may have to be decided anew then.
                        call.run.wakers.wait_until(ordinal, wake, cx.waker());
                        ready!(until.as_mut().poll(&mut Context::from_waker(&timer_waker)));
                        // The clock may be a little behind the timer: ask again, with a timer of what is left.
                        timer = None;
                    }
                    _ => {
                        call.run.wakers.wait(ordinal, cx.waker());
                        return Poll::Pending;
                    }
                }
            }
        })
        .await
    }
}

pub(super) fn can_ask(run: Arc<Run>, kind: InputKind) -> impl Future<Output = Result<bool, ToolError>> + Send + use<> {
    let call = JournaledCall::new(run, EntryKind::Client);
    async move { call.decoded(|| json_of(&call.run.capabilities.allow(kind))).await }
}

pub(super) fn defer(run: Arc<Run>) -> impl Future<Output = Result<(), ToolError>> + Send + use<> {
    let call = JournaledCall::new(run, EntryKind::Defer);
    async move {
        if call.run.deferral == Deferral::Refused {
            return Err(ToolError::protocol(ErrorData::internal_error(
                "ctx.defer() needs `defer` on the tool's attribute: #[mcp_task(defer)]",
                None,
            )));
        }
        call.recorded(|| json_of(&())).await?;
        if call.run.deferral == Deferral::Pending {
            // The run ends here; the first run of the task passes this call again, with its entry recorded.
            call.run.defer();
            return std::future::pending().await;
        }
        Ok(())
    }
}

/// The JSON of a timestamp, bytes, a truth value or null, which always have one.
fn json_of<T: serde::Serialize + ?Sized>(value: &T) -> Json {
    Json::of(value).unwrap_or_else(|_| Json::from(serde_json::value::RawValue::NULL.to_owned()))
}
