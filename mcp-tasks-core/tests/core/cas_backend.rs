//! A backend in memory, and what can happen to one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use mcp_tasks_core::store::contract::Dice;
use mcp_tasks_core::store::{CasBackend, CasEntry, CasExpired, CasOutcome, CasVersion, CasWrite, Expect};
use mcp_tasks_core::{RecordError, StoreError, StoreFuture, Timestamp};

/// What happens to the next conditional write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// It works.
    None,
    /// It takes place, and the answer is lost.
    AppliedThenLost,
    /// It does not take place.
    FailedBefore,
    /// It takes place, the answer is lost, and the driver repeats it.
    AppliedThenConflict,
    /// Another write comes first, though one that changes nothing anybody looks at.
    Conflict,
    /// It takes long, before and after.
    Slow,
}

#[derive(Debug, Clone)]
struct Slot {
    entry: CasEntry,
    expires: Option<u64>,
}

/// Bytes under keys. Every operation lets others go first, as a network would.
#[derive(Debug, Default)]
pub(crate) struct MemoryBackend {
    slots: Mutex<BTreeMap<String, Slot>>,
    versions: AtomicU64,
    /// By the backend's own clock, in milliseconds.
    now: AtomicU64,
    pub(crate) trips: AtomicUsize,
    pub(crate) conflicts: AtomicUsize,
    pub(crate) faults: Mutex<VecDeque<Fault>>,
    /// Where it is there, every third write or so fails.
    chance: Mutex<Option<Dice>>,
    /// How writes have failed by chance so far.
    pub(crate) failed: Mutex<BTreeSet<Fault>>,
    pub(crate) pauses: Mutex<Vec<Duration>>,
    pub(crate) ttls: Mutex<Vec<Option<Duration>>>,
    pub(crate) unreadable: Mutex<Vec<String>>,
}

impl MemoryBackend {
    pub(crate) fn set_clock(&self, now: Timestamp) {
        self.now.store(now.as_millis(), SeqCst);
    }

    pub(crate) fn fail_next(&self, faults: &[Fault]) {
        self.faults.lock().unwrap().extend(faults);
    }

    /// Has every third write or so fail, by the numbers of a seed.
    pub(crate) fn fail_by_chance(&self, seed: u64) {
        *self.chance.lock().unwrap() = Some(Dice::new(seed));
    }

    fn next_fault(&self) -> Fault {
        if let Some(dice) = &mut *self.chance.lock().unwrap()
            && dice.one_in(3)
        {
            let fault = [
                Fault::AppliedThenLost,
                Fault::FailedBefore,
                Fault::AppliedThenConflict,
                Fault::Conflict,
            ][dice.place(4)];
            self.failed.lock().unwrap().insert(fault);
            return fault;
        }
        self.faults.lock().unwrap().pop_front().unwrap_or(Fault::None)
    }

    /// Overwrites a value behind everybody's back, as an operator's tool or a later release would.
    pub(crate) fn plant(&self, key: &str, value: &[u8]) {
        let entry = CasEntry::new(value.to_vec(), self.next_version());
        let slot = Slot { entry, expires: None };
        self.slots.lock().unwrap().insert(key.to_owned(), slot);
    }

    pub(crate) fn raw(&self, key: &str) -> Option<Vec<u8>> {
        let slots = self.slots.lock().unwrap();
        slots.get(key).map(|slot| slot.entry.value.clone())
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.slots.lock().unwrap().keys().cloned().collect()
    }

    fn next_version(&self) -> CasVersion {
        CasVersion::new(self.versions.fetch_add(1, SeqCst) + 1)
    }

    fn set(&self, key: &str, expect: Expect, write: CasWrite<'_>) -> CasOutcome {
        let now = self.now.load(SeqCst);
        let mut slots = self.slots.lock().unwrap();
        let present = slots
            .get(key)
            .filter(|slot| slot.expires.is_none_or(|expires| now <= expires));
        let fits = match (expect, present) {
            (Expect::Absent, None) => true,
            (Expect::Version(version), Some(slot)) => slot.entry.version == version,
            _ => false,
        };
        if !fits {
            self.conflicts.fetch_add(1, SeqCst);
            return CasOutcome::Conflict;
        }
        assert!(
            write.ttl.is_none_or(|ttl| ttl >= Duration::from_millis(1)),
            "no backend takes 0"
        );
        self.ttls.lock().unwrap().push(write.ttl);
        let version = self.next_version();
        let slot = Slot {
            entry: CasEntry::new(write.value.to_vec(), version),
            expires: write.ttl.map(|ttl| now + u64::try_from(ttl.as_millis()).unwrap()),
        };
        slots.insert(key.to_owned(), slot);
        CasOutcome::Applied(version)
    }
}

async fn give_way(times: u32) {
    let mut left = times;
    std::future::poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn unavailable() -> StoreError {
    StoreError::Unavailable {
        reason: "a fault of the test".to_owned(),
        source: None,
    }
}

impl CasBackend for MemoryBackend {
    fn get<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<CasEntry>> {
        Box::pin(async move {
            self.trips.fetch_add(1, SeqCst);
            give_way(1).await;
            let now = self.now.load(SeqCst);
            let slots = self.slots.lock().unwrap();
            let live = slots
                .get(key)
                .filter(|slot| slot.expires.is_none_or(|expires| now <= expires));
            Ok(live.map(|slot| slot.entry.clone()))
        })
    }

    fn compare_and_set<'a>(&'a self, key: &'a str, expect: Expect, write: CasWrite<'a>) -> StoreFuture<'a, CasOutcome> {
        Box::pin(async move {
            self.trips.fetch_add(1, SeqCst);
            give_way(1).await;
            match self.next_fault() {
                Fault::None => Ok(self.set(key, expect, write)),
                Fault::AppliedThenLost => {
                    let _ = self.set(key, expect, write);
                    Err(unavailable())
                }
                Fault::FailedBefore => Err(unavailable()),
                Fault::AppliedThenConflict => {
                    let _ = self.set(key, expect, write);
                    Ok(CasOutcome::Conflict)
                }
                Fault::Conflict => {
                    if let Some(slot) = self.slots.lock().unwrap().get_mut(key) {
                        slot.entry.version = self.next_version();
                    }
                    Ok(CasOutcome::Conflict)
                }
                Fault::Slow => {
                    give_way(50).await;
                    let outcome = self.set(key, expect, write);
                    give_way(50).await;
                    Ok(outcome)
                }
            }
        })
    }

    fn remove<'a>(&'a self, key: &'a str, version: Option<CasVersion>) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            self.trips.fetch_add(1, SeqCst);
            give_way(1).await;
            let mut slots = self.slots.lock().unwrap();
            let is_meant = slots
                .get(key)
                .is_some_and(|slot| version.is_none_or(|version| slot.entry.version == version));
            if is_meant {
                slots.remove(key);
            }
            Ok(is_meant)
        })
    }

    fn pause(&self, duration: Duration) -> StoreFuture<'_, ()> {
        self.pauses.lock().unwrap().push(duration);
        Box::pin(async move {
            // One turn for each half millisecond, so that who waits longer comes later.
            give_way(u32::try_from(duration.as_micros() / 500).unwrap()).await;
            Ok(())
        })
    }

    fn as_expired(&self) -> Option<&dyn CasExpired> {
        Some(self)
    }
}

impl CasExpired for MemoryBackend {
    fn expired<'a>(
        &'a self,
        prefix: &'a str,
        _now: Timestamp,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(String, CasEntry)>> {
        Box::pin(async move {
            give_way(1).await;
            let slots = self.slots.lock().unwrap();
            let page = slots
                .iter()
                .filter(|(key, _)| key.starts_with(prefix) && after.is_none_or(|after| key.as_str() > after))
                .take(limit)
                .map(|(key, slot)| (key.clone(), slot.entry.clone()));
            Ok(page.collect())
        })
    }

    fn unreadable(&self, key: &str, error: &RecordError) {
        self.unreadable.lock().unwrap().push(format!("{key}: {error}"));
    }
}

/// A backend by itself, to be looked at while stores work on it.
pub(crate) fn backend() -> Arc<MemoryBackend> {
    Arc::default()
}
