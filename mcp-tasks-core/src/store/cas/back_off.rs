//! How long to wait when others write too.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use super::CasBackend;
use crate::{StoreError, TaskId, WriteId};

/// How often a write is tried before its caller is told. With the pauses below this is a second or two, in which dozens
/// of writers to one record have had their turn, and well below any lease.
const ATTEMPTS: u32 = 40;

/// The first pause is about a round trip in one data centre; the longest keeps forty attempts within seconds.
const FIRST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(64);

/// Counts the conflicts of one write and waits after each.
pub(super) struct BackOff<'a, B> {
    backend: &'a B,
    scatter: u64,
    conflicts: u32,
}

impl<'a, B: CasBackend> BackOff<'a, B> {
    /// The pauses are scattered by the write's id: it is unique, so no two writers wait in step, and it is an argument,
    /// so a run can be repeated.
    pub(super) fn new(backend: &'a B, id: &TaskId, write: Option<WriteId>) -> Self {
        let mut hasher = std::hash::DefaultHasher::new();
        (id, write).hash(&mut hasher);
        Self {
            backend,
            scatter: hasher.finish(),
            conflicts: 0,
        }
    }

    /// Waits for the next attempt, the first time not at all: one conflict is an encounter, two are contention.
    pub(super) async fn after_conflict(&mut self) -> Result<(), StoreError> {
        self.conflicts += 1;
        if self.conflicts >= ATTEMPTS {
            return Err(StoreError::Unavailable {
                reason: format!("others wrote to the task first, {ATTEMPTS} times in a row"),
                source: None,
            });
        }
        if self.conflicts == 1 {
            return Ok(());
        }
        let longest = FIRST.saturating_mul(1 << (self.conflicts - 2).min(16)).min(LONGEST);
        self.backend.pause(self.scattered(longest)).await
    }

    /// Anything from nothing to `longest`: spreading over the whole range clears a crowd soonest.
    fn scattered(&mut self, longest: Duration) -> Duration {
        // SplitMix64: a few operations, and every bit of its output is usable.
        self.scatter = self.scatter.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.scatter;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let micros = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(mixed % (micros + 1))
    }
}
