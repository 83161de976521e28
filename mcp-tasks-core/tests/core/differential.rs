//! Random operations against a plain map, on stores whose backend fails in every way it can.
//!
//! `MCP_TASKS_SEED=<n> cargo test -p mcp-tasks-core differential` repeats one run.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::SeqCst;

use mcp_tasks_core::store::contract::Differential;
use mcp_tasks_core::{CasStore, MemoryStore, TaskStore};

use super::cas_backend::backend;
use super::stores::block_on;

/// At least so many runs, and no more than so many until every fault has met a write.
const RUNS: u64 = 15;
const MOST_RUNS: u64 = 100;

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
        let backend = backend();
        backend.fail_by_chance(seed);
        let room = if seed % 2 == 0 { 4_000 } else { 1 << 20 };
        let nodes = [0; 2].map(|_| CasStore::new(backend.clone()).with_memory(room));
        let handles: [&dyn TaskStore; 2] = [&nodes[0], &nodes[1]];
        block_on(Differential::new(seed).sweeping().run(&handles));
        assert_eq!(backend.keys(), [""; 0], "a run leaves nothing behind");
        occurred.append(&mut backend.failed.lock().unwrap());
        conflicts += backend.conflicts.load(SeqCst);
        occurred.len() == 4 && conflicts > 0
    });
}
