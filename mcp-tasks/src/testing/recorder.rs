//! What happened in a test, over all runs of its body.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcp_tasks_core::Ledger;

use super::TestStep;
use crate::run::observer::RunObserver;
use crate::run::progress::ProgressUpdate;

#[derive(Default)]
pub(super) struct Recorder {
    recording: Mutex<Recording>,
}

#[derive(Default)]
pub(super) struct Recording {
    steps: BTreeMap<u32, TestStep>,
    recorded_twice: Option<String>,
    pub(super) progress: Vec<String>,
    pub(super) ledgers: Vec<Ledger>,
}

impl Recording {
    pub(super) fn steps(&mut self) -> Vec<TestStep> {
        std::mem::take(&mut self.steps).into_values().collect()
    }
}

impl Recorder {
    fn lock(&self) -> MutexGuard<'_, Recording> {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A ledger was written.
    pub(super) fn stored(&self, ledger: &Ledger) {
        let mut recording = self.lock();
        if recording.ledgers.last() != Some(ledger) {
            recording.ledgers.push(ledger.clone());
        }
    }

    /// A step whose result was kept more than once.
    pub(super) fn recorded_twice(&self) -> Option<String> {
        self.lock().recorded_twice.clone()
    }

    pub(super) fn finish(&self) -> Recording {
        std::mem::take(&mut *self.lock())
    }
}

impl RunObserver for Recorder {
    fn step_called(&self, ordinal: u32, name: &str) {
        let mut recording = self.lock();
        let step = recording.steps.entry(ordinal).or_insert_with(|| TestStep {
            name: name.to_owned(),
            calls: 0,
            recorded: false,
        });
        step.calls += 1;
    }

    fn step_recorded(&self, ordinal: u32) {
        let mut recording = self.lock();
        let Some(step) = recording.steps.get_mut(&ordinal) else {
            return;
        };
        if std::mem::replace(&mut step.recorded, true) {
            recording.recorded_twice = Some(step.name.clone());
        }
    }

    fn reported(&self, update: &ProgressUpdate) {
        let message = update.to_report().message;
        self.lock().progress.push(message.into());
    }
}
