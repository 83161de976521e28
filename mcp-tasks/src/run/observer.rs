//! Seeing what a run does; for the test kit.

use super::progress::ProgressUpdate;

/// Is told what a run does.
pub(crate) trait RunObserver: Send + Sync {
    /// The work of the step at `ordinal` is called, for the first time or again.
    fn step_called(&self, ordinal: u32, name: &str);

    /// The step at `ordinal` ended, and its result goes into the ledger.
    fn step_recorded(&self, ordinal: u32);

    /// A report was taken in.
    fn reported(&self, update: &ProgressUpdate);
}
