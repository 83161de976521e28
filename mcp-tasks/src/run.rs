//! One run of a body: what its context and the driver share.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use mcp_tasks_core::{ClientCapabilities, Cursor, Ledger, TaskId, Timestamp};
use tokio_util::sync::CancellationToken;

use crate::run::clock::{Clock, Timer};
use crate::run::progress::ProgressUpdate;
use observer::RunObserver;
use polling::RunNumber;
use reports::{Keep, Reports};
use wakers::Wakers;

pub(crate) mod body;
pub(crate) mod carrier;
pub(crate) mod clock;
pub(crate) mod driver;
pub(crate) mod ending;
pub(crate) mod errors;
pub(crate) mod id;
pub(crate) mod observer;
pub(crate) mod origin;
pub(crate) mod polling;
pub(crate) mod progress;
mod reports;
pub(crate) mod sink;
pub(crate) mod wakers;

pub(crate) use carrier::{Carrier, Deferral, InCall};

/// What a run is given.
pub(crate) struct RunStart<'a> {
    pub(crate) carrier: Box<dyn Carrier>,
    /// The id of the task, or of the call, which would be the task's.
    pub(crate) id: TaskId,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) ledger: &'a Ledger,
    pub(crate) deferral: Deferral,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) token: CancellationToken,
    /// The highest progress that was reported before.
    pub(crate) progress: Option<f64>,
}

/// One run of a body, from the top against its ledger.
pub(crate) struct Run {
    number: RunNumber,
    pub(crate) carrier: Box<dyn Carrier>,
    pub(crate) id: TaskId,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) deferral: Deferral,
    pub(crate) token: CancellationToken,
    /// What the body gets: it may fire this one itself without ending its run.
    pub(crate) shown_token: CancellationToken,
    pub(crate) wakers: Arc<Wakers>,
    clock: Arc<dyn Clock>,
    is_deferred: AtomicBool,
    cursor: Mutex<Cursor>,
    reports: Reports,
    observer: OnceLock<Arc<dyn RunObserver>>,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

/// A panic while one of these locks is held leaves nothing half done, so a poisoned lock is as good as before.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Run {
    pub(crate) fn new(start: RunStart<'_>) -> Arc<Self> {
        // A child: it fires when the run ends, and the call or task it belongs to may go on in another run.
        let token = start.token.child_token();
        let keep = if start.carrier.is_task() {
            Keep::Newest
        } else {
            Keep::All
        };
        Arc::new(Self {
            number: RunNumber::next(),
            carrier: start.carrier,
            id: start.id,
            capabilities: start.capabilities,
            deferral: start.deferral,
            shown_token: token.child_token(),
            token,
            wakers: Arc::default(),
            clock: start.clock,
            is_deferred: AtomicBool::new(false),
            cursor: Mutex::new(Cursor::new(start.ledger)),
            reports: Reports::new(keep, start.progress),
            observer: OnceLock::new(),
        })
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A wait on the run's clock.
    pub(crate) fn timer(&self, at: Timestamp) -> Timer {
        self.clock.timer(at)
    }

    /// Tells `observer` what the run does, unless it has one already.
    #[cfg(feature = "testing")]
    pub(crate) fn observe(&self, observer: Arc<dyn RunObserver>) {
        let _ = self.observer.set(observer);
    }

    pub(crate) fn observer(&self) -> Option<&dyn RunObserver> {
        self.observer.get().map(|observer| &**observer)
    }

    /// The body has come to the point from which it goes on as a task.
    pub(crate) fn defer(&self) {
        self.is_deferred.store(true, Ordering::Release);
    }

    pub(crate) fn is_deferred(&self) -> bool {
        self.is_deferred.load(Ordering::Acquire)
    }

    pub(crate) fn cursor(&self) -> MutexGuard<'_, Cursor> {
        lock(&self.cursor)
    }

    /// Takes the ordinal of a call that is made now. Calls from outside the driver's poll take none: they are refused
    /// when they are polled, and must not shift the ordinals of the body's own.
    pub(crate) fn take_ordinal(&self) -> Option<u32> {
        if !self.is_polling() {
            return None;
        }
        let ordinal = self.cursor().take_ordinal();
        // A recorded answer may have been waiting for just this call.
        self.wakers.wake_waiting();
        Some(ordinal)
    }

    /// Runs `poll` as the driver's poll of this run's body.
    pub(crate) fn polling<T>(&self, poll: impl FnOnce() -> T) -> T {
        self.number.polling(poll)
    }

    /// Whether the caller is inside the driver's poll of this run's body.
    pub(crate) fn is_polling(&self) -> bool {
        self.number.is_polling()
    }

    /// Takes a report in, unless it is not above the last one or no number at all. On the synchronous path every report
    /// is kept for the client; a task keeps the newest.
    pub(crate) fn report(&self, update: &ProgressUpdate) {
        if !self.reports.push(update) {
            return;
        }
        if let Some(observer) = self.observer() {
            observer.reported(update);
        }
        if !self.is_polling() {
            self.wakers.notify_driver();
        }
    }

    /// The highest progress that was reported so far.
    pub(crate) fn highest_progress(&self) -> Option<f64> {
        self.reports.highest()
    }

    pub(crate) fn has_reports(&self) -> bool {
        !self.reports.is_empty()
    }

    /// The last report, sent or not: a write that was to send it may have been dropped on its way when the run ended.
    pub(crate) fn last_report(&self) -> Option<ProgressUpdate> {
        self.reports.last()
    }

    pub(crate) fn take_reports(&self) -> Vec<ProgressUpdate> {
        self.reports.take()
    }
}
