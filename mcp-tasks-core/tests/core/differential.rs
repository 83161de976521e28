//! Random operations against a plain map, on stores whose backend fails in every way it can.
//!
//! `MCP_TASKS_SEED=<n> cargo test -p mcp-tasks-core differential` repeats one run.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};

use mcp_tasks_core::store::contract::Differential;
use mcp_tasks_core::store::{CasBackend, CasEntry, CasExpired, CasOutcome, CasVersion, CasWrite, Expect};
use mcp_tasks_core::{CasStore, MemoryStore, StoreFuture, TaskStore};

use super::body::Rng;
use super::cas_backend::{Fault, MemoryBackend, backend};
use super::stores::block_on;

/// At least so many runs, and no more than so many until every fault has met a write.
const RUNS: u64 = 15;
const MOST_RUNS: u64 = 100;

/// A backend whose every third write or so fails, by the numbers of a seed.
#[derive(Debug)]
struct Unsteady {
    inner: Arc<MemoryBackend>,
    rng: Mutex<Rng>,
    occurred: Mutex<BTreeSet<Fault>>,
}

impl Unsteady {
    fn new(seed: u64) -> Self {
        Self {
            inner: backend(),
            rng: Mutex::new(Rng::new(seed)),
            occurred: Mutex::default(),
        }
    }
}

impl CasBackend for Unsteady {
    fn get<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<CasEntry>> {
        self.inner.get(key)
    }

    fn compare_and_set<'a>(&'a self, key: &'a str, expect: Expect, write: CasWrite<'a>) -> StoreFuture<'a, CasOutcome> {
        let mut rng = self.rng.lock().unwrap();
        if rng.one_in(3) {
            let faults = [
                Fault::AppliedThenLost,
                Fault::FailedBefore,
                Fault::AppliedThenConflict,
                Fault::Conflict,
            ];
            let fault = faults[rng.below(4) as usize];
            self.inner.fail_next(&[fault]);
            self.occurred.lock().unwrap().insert(fault);
        }
        self.inner.compare_and_set(key, expect, write)
    }

    fn remove<'a>(&'a self, key: &'a str, version: Option<CasVersion>) -> StoreFuture<'a, bool> {
        self.inner.remove(key, version)
    }

    fn pause(&self, duration: std::time::Duration) -> StoreFuture<'_, ()> {
        self.inner.pause(duration)
    }

    fn as_expired(&self) -> Option<&dyn CasExpired> {
        self.inner.as_expired()
    }
}

/// Says which seed it was when a comparison fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("repeat this run with MCP_TASKS_SEED={}", self.0);
        }
    }
}

/// Runs `trial` for one seed after the other until it has nothing left to see, or for the one that is asked for.
fn for_seeds(mut trial: impl FnMut(u64) -> bool) {
    if let Ok(seed) = std::env::var("MCP_TASKS_SEED") {
        let seed = Seed(seed.parse().expect("a seed is a number"));
        trial(seed.0);
        return;
    }
    for seed in 1.. {
        let seed = Seed(seed);
        let complete = trial(seed.0);
        if seed.0 >= RUNS && complete {
            return;
        }
        assert!(seed.0 < MOST_RUNS, "something never occurred");
    }
}

#[test]
fn the_memory_store_answers_as_the_plain_map_does() {
    for_seeds(|seed| {
        let store = MemoryStore::new();
        block_on(Differential::new(seed).sweeping().run(&[&store]));
        true
    });
}

/// Two nodes on one backend, neither of which knows what the other wrote, with room to remember little or much.
#[test]
fn nodes_on_an_unsteady_backend_answer_as_the_plain_map_does() {
    let (mut occurred, mut conflicts) = (BTreeSet::new(), 0);
    for_seeds(|seed| {
        let backend = Arc::new(Unsteady::new(seed));
        let room = if seed % 2 == 0 { 4_000 } else { 1 << 20 };
        let nodes = [0; 2].map(|_| CasStore::new(backend.clone()).with_memory(room));
        let handles: [&dyn TaskStore; 2] = [&nodes[0], &nodes[1]];
        block_on(Differential::new(seed).sweeping().run(&handles));
        assert_eq!(backend.inner.keys(), [""; 0], "a run leaves nothing behind");
        occurred.append(&mut backend.occurred.lock().unwrap());
        conflicts += backend.inner.conflicts.load(SeqCst);
        occurred.len() == 4 && conflicts > 0
    });
}
