//! What happened in a test, over all runs of its body.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcp_tasks_core::Ledger;

use super::TestStep;
use crate::run::Watch;
use crate::run::progress::ProgressUpdate;

#[derive(Default)]
pub(super) struct Recorder {
    seen: Mutex<Seen>,
}

#[derive(Default)]
pub(super) struct Seen {
    steps: BTreeMap<u32, TestStep>,
    kept_twice: Option<String>,
    pub(super) progress: Vec<String>,
    pub(super) ledgers: Vec<Ledger>,
}

impl Seen {
    pub(super) fn steps(&mut self) -> Vec<TestStep> {
        std::mem::take(&mut self.steps).into_values().collect()
    }
}

impl Recorder {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A ledger was written.
    pub(super) fn stored(&self, ledger: &Ledger) {
        let mut seen = self.lock();
        if seen.ledgers.last() != Some(ledger) {
            seen.ledgers.push(ledger.clone());
        }
    }

    /// A step whose result was kept more than once.
    pub(super) fn kept_twice(&self) -> Option<String> {
        self.lock().kept_twice.clone()
    }

    pub(super) fn take(&self) -> Seen {
        std::mem::take(&mut *self.lock())
    }
}

impl Watch for Recorder {
    fn step_called(&self, ordinal: u32, name: &str) {
        let mut seen = self.lock();
        let step = seen.steps.entry(ordinal).or_insert_with(|| TestStep {
            name: name.to_owned(),
            calls: 0,
            kept: false,
        });
        step.calls += 1;
    }

    fn step_kept(&self, ordinal: u32) {
        let mut seen = self.lock();
        let Some(step) = seen.steps.get_mut(&ordinal) else {
            return;
        };
        if std::mem::replace(&mut step.kept, true) {
            seen.kept_twice = Some(step.name.clone());
        }
    }

    fn reported(&self, update: &ProgressUpdate) {
        let message = update.to_report().message;
        self.lock().progress.push(message.into());
    }
}
