//! The reports of a run that wait to be sent.

use std::collections::VecDeque;
use std::sync::Mutex;

use super::lock;
use super::progress::ProgressUpdate;

/// How many reports of one synchronous call may wait for the connection. A body that reports faster than the client
/// reads loses intermediate ones, never the newest.
const MOST_WAITING: usize = 256;

/// Which reports wait where they come faster than they are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// Of a task, which shows the newest.
    Newest,
    /// Of a call, whose client gets every one.
    All,
}

#[derive(Debug)]
pub(super) struct Reports {
    keep: Keep,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Also of earlier runs.
    highest: Option<f64>,
    /// The last one taken in, which is the highest of this run.
    last: Option<ProgressUpdate>,
    waiting: VecDeque<ProgressUpdate>,
}

impl Reports {
    /// None yet; `highest` is the highest progress that was reported in earlier runs.
    pub(super) fn new(keep: Keep, highest: Option<f64>) -> Self {
        let state = State {
            highest,
            last: None,
            waiting: VecDeque::new(),
        };
        Self {
            keep,
            state: Mutex::new(state),
        }
    }

    /// Takes a report in. `false` if it is not above the last one, or no number at all, and is dropped.
    pub(super) fn push(&self, update: &ProgressUpdate) -> bool {
        let mut state = lock(&self.state);
        let progress = update.progress();
        if !progress.is_finite() || state.highest.is_some_and(|highest| progress <= highest) {
            tracing::debug!(progress, "progress that does not increase is dropped");
            return false;
        }
        state.highest = Some(progress);
        state.last = Some(update.clone());
        match self.keep {
            Keep::Newest => state.waiting.clear(),
            Keep::All if state.waiting.len() >= MOST_WAITING => drop(state.waiting.pop_back()),
            Keep::All => {}
        }
        state.waiting.push_back(update.clone());
        true
    }

    pub(super) fn highest(&self) -> Option<f64> {
        lock(&self.state).highest
    }

    pub(super) fn last(&self) -> Option<ProgressUpdate> {
        lock(&self.state).last.clone()
    }

    pub(super) fn is_empty(&self) -> bool {
        lock(&self.state).waiting.is_empty()
    }

    pub(super) fn take(&self) -> Vec<ProgressUpdate> {
        lock(&self.state).waiting.drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(reports: &Reports, progress: f64) -> bool {
        reports.push(&ProgressUpdate::new(progress))
    }

    fn taken(reports: &Reports) -> Vec<f64> {
        reports.take().iter().map(ProgressUpdate::progress).collect()
    }

    #[test]
    fn progress_only_increases() {
        let reports = Reports::new(Keep::All, Some(1.0));
        let taken_in = [1.0, f64::NAN, 2.0, 2.0, 1.5, 3.0].map(|progress| push(&reports, progress));
        assert_eq!(taken_in, [false, false, true, false, false, true]);
        assert_eq!((taken(&reports), reports.highest()), (vec![2.0, 3.0], Some(3.0)));
        assert!(reports.is_empty() && reports.last() == Some(ProgressUpdate::new(3.0)));
    }

    #[test]
    fn a_task_keeps_the_newest_and_a_call_so_many() {
        let (task, call) = (Reports::new(Keep::Newest, None), Reports::new(Keep::All, None));
        let most = u32::try_from(MOST_WAITING).unwrap();
        for progress in 0..most + 10 {
            assert!(push(&task, progress.into()) && push(&call, progress.into()));
        }
        let newest = f64::from(most + 9);
        assert_eq!(taken(&task), [newest]);
        let taken = taken(&call);
        assert_eq!((taken.len(), taken.last()), (MOST_WAITING, Some(&newest)));
    }
}
