//! Random operations against a plain map, the memory store and two nodes of the compare-and-set store: every answer and
//! every record is compared. A run goes on until each operation and each kind of conflict has occurred.
//!
//! `MCP_TASKS_SEED=<n> cargo test -p mcp-tasks-core differential` repeats one run.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mcp_tasks_core::{
    CasStore, ClientCapabilities, Json, MemoryStore, StoreError, TaskId, TaskRecord, TaskStatus, TaskStore, Timestamp,
    WriteId,
};

use super::body::Rng;
use super::cas_backend::{Fault, MemoryBackend};
use super::reference_store::ReferenceStore;
use super::stores::block_on;
use mutate::Mutate;

mod mutate;

/// Few ids, so that operations meet.
const IDS: u32 = 6;
/// At least so many runs, and no more than so many until everything has occurred.
const RUNS: u64 = 15;
const MOST_RUNS: u64 = 300;
const STEPS: usize = 600;

/// What has to occur before the test may end.
const WANTED: [&str; 25] = [
    "created",
    "create: taken",
    "create: repeated",
    "create: over an expired one",
    "create: after a delete",
    "get: there",
    "get: unknown",
    "get: expired",
    "update: applied",
    "update: kept",
    "update: repeated",
    "update: repeated behind a later write",
    "update: unknown",
    "update: expired",
    "update: fenced",
    "update: already ended",
    "update: answered",
    "update: extended",
    "delete: there",
    "delete: not there",
    "sweep: something",
    "sweep: nothing",
    "backend: conflict",
    "backend: lost answer",
    "backend: failed before",
];

fn json(text: &str) -> Json {
    serde_json::from_str(text).unwrap()
}

/// The same operation until it is answered, as the runtime repeats it.
fn insist<T>(mut attempt: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
    for _ in 0..100 {
        match attempt() {
            Err(error) if error.is_retryable() => {}
            answer => return answer,
        }
    }
    panic!("a hundred attempts failed");
}

fn text(record: &TaskRecord) -> String {
    record.to_json().unwrap()
}

/// An answer of `create`, `get` or `update`, to be compared.
type Answer = Result<Option<(String, bool)>, &'static str>;

struct Trial {
    rng: Rng,
    now: Timestamp,
    backend: Arc<MemoryBackend>,
    reference: ReferenceStore,
    memory: MemoryStore,
    nodes: [CasStore<Arc<MemoryBackend>>; 2],
    writes: u128,
    /// Writes that were made, to be repeated.
    updates: Vec<(TaskId, WriteId, Mutate, Timestamp)>,
    creations: Vec<TaskRecord>,
    ever: BTreeSet<TaskId>,
    occurred: BTreeSet<&'static str>,
}

impl Trial {
    fn new(seed: u64) -> Self {
        let backend = super::cas_backend::backend();
        let mut rng = Rng::new(seed);
        // A little room makes what was seen come and go.
        let room = if rng.one_in(2) { 4_000 } else { 1 << 20 };
        let node = || CasStore::new(backend.clone()).with_memory(room);
        Self {
            now: Timestamp::from_millis(1_800_000_000_000),
            nodes: [node(), node()],
            backend,
            rng,
            reference: ReferenceStore::default(),
            memory: MemoryStore::new(),
            writes: 0,
            updates: Vec::new(),
            creations: Vec::new(),
            ever: BTreeSet::new(),
            occurred: BTreeSet::new(),
        }
    }

    fn saw(&mut self, what: &'static str) {
        self.occurred.insert(what);
    }

    fn id(&mut self) -> TaskId {
        TaskId::new(&format!("t{}", self.rng.below(IDS)))
    }

    fn next_write(&mut self) -> WriteId {
        self.writes += 1;
        WriteId::new(self.writes)
    }

    fn node(&mut self) -> usize {
        usize::from(self.rng.one_in(2))
    }

    fn plan_faults(&mut self) {
        self.backend.faults.lock().unwrap().clear();
        while self.rng.one_in(3) {
            let (fault, name) = [
                (Fault::AppliedThenLost, "backend: lost answer"),
                (Fault::FailedBefore, "backend: failed before"),
                (Fault::AppliedThenConflict, "backend: lost answer"),
                (Fault::Conflict, "backend: conflict"),
            ][self.rng.below(4) as usize];
            self.backend.fail_next(&[fault]);
            self.saw(name);
        }
    }

    /// The reference's answer, after the others gave the same.
    fn compare(&mut self, what: &str, answer: impl Fn(&dyn TaskStore) -> Result<Answer, StoreError>) -> Answer {
        self.plan_faults();
        let node = self.node();
        let expected = answer(&self.reference).expect("the reference answers");
        let memory = answer(&self.memory).expect("the memory store answers");
        assert_eq!(memory, expected, "{what}: the memory store");
        let cas = insist(|| answer(&self.nodes[node])).expect("the compare-and-set store answers");
        assert_eq!(cas, expected, "{what}: node {node}");
        expected
    }

    fn create(&mut self) {
        let again = !self.creations.is_empty() && self.rng.one_in(4);
        let record = if again {
            let n = self.rng.below(u32::try_from(self.creations.len()).unwrap());
            self.creations[n as usize].clone()
        } else {
            let ttl = [None, Some(0), Some(5), Some(40)][self.rng.below(4) as usize];
            let mut record = TaskRecord::new(
                self.id(),
                "encode".into(),
                json(r#"{"b":1,"a":18446744073709551616}"#),
                ClientCapabilities::new(json("{}")),
                self.now,
                ttl.map(Duration::from_millis),
                Duration::from_secs(2),
            );
            record.last_write = (!self.rng.one_in(8)).then(|| self.next_write());
            record
        };
        if again && record.created_at != self.now {
            // A creation is repeated at once or not at all; later its clock would be behind everybody's.
            return;
        }
        let id = record.task_id.clone();
        let earlier = block_on(self.reference.get(&id, Timestamp::default())).unwrap();
        // Without an id a repeated creation cannot be told from another, so a lost answer is not for it.
        if record.last_write.is_none() {
            let node = self.node();
            self.backend.faults.lock().unwrap().clear();
            let stores: [&dyn TaskStore; 3] = [&self.reference, &self.memory, &self.nodes[node]];
            let answers = stores.map(|store| block_on(store.create(record.clone())).ok().map(|record| text(&record)));
            assert!(
                answers[1] == answers[0] && answers[2] == answers[0],
                "create: {answers:?}"
            );
            self.ever.insert(id);
            return;
        }
        let answer = self.compare("create", |store| match block_on(store.create(record.clone())) {
            Ok(record) => Ok(Ok(Some((text(&record), true)))),
            Err(StoreError::AlreadyExists { .. }) => Ok(Err("taken")),
            Err(error) => Err(error),
        });
        match (answer, earlier) {
            (Err(_), _) => self.saw("create: taken"),
            (Ok(_), Some(earlier)) if earlier.last_write == record.last_write => self.saw("create: repeated"),
            (Ok(_), Some(_)) => self.saw("create: over an expired one"),
            (Ok(_), None) if self.ever.contains(&id) => self.saw("create: after a delete"),
            (Ok(_), None) => self.saw("created"),
        }
        self.ever.insert(id);
        self.creations.push(record);
    }

    fn get(&mut self) {
        let (id, now) = (self.id(), self.now);
        let answer = self.compare("get", |store| {
            Ok(Ok(block_on(store.get(&id, now))?.map(|record| (text(&record), true))))
        });
        let is_stored = block_on(self.reference.get(&id, Timestamp::default()))
            .unwrap()
            .is_some();
        self.saw(match answer {
            Ok(Some(_)) => "get: there",
            _ if is_stored => "get: expired",
            _ => "get: unknown",
        });
    }

    fn update(&mut self) {
        let again = !self.updates.is_empty() && self.rng.one_in(5);
        let (id, write, mutate, stamp) = if again {
            let n = self.rng.below(u32::try_from(self.updates.len().min(6)).unwrap()) as usize;
            self.updates[self.updates.len() - 1 - n].clone()
        } else {
            (self.id(), self.next_write(), Mutate::random(&mut self.rng), self.now)
        };
        let now = self.now;
        let before = block_on(self.reference.get(&id, Timestamp::default())).unwrap();
        let mutation = mutate.clone().mutation(stamp);
        let answer = self.compare("update", |store| {
            let updated = block_on(store.update(&id, now, write, mutation.clone()))?;
            Ok(Ok(updated.map(|updated| (text(&updated.record), updated.applied))))
        });
        match (answer, before) {
            (Ok(Some((_, true))), Some(before)) if before.last_write == Some(write) => self.saw("update: repeated"),
            (Ok(Some((_, true))), _) => match mutate {
                Mutate::Answer(_) => self.saw("update: answered"),
                Mutate::Extend(..) => self.saw("update: extended"),
                _ => self.saw("update: applied"),
            },
            (Ok(Some((_, false))), Some(before)) => {
                if again {
                    self.saw("update: repeated behind a later write");
                }
                match mutate {
                    _ if before.status.is_terminal() => self.saw("update: already ended"),
                    Mutate::Progress(epoch, _)
                        if before.status == TaskStatus::Working && !before.is_owned_by(epoch) =>
                    {
                        self.saw("update: fenced");
                    }
                    _ => self.saw("update: kept"),
                }
            }
            (_, Some(_)) => self.saw("update: expired"),
            (_, None) => self.saw("update: unknown"),
        }
        self.updates.push((id, write, mutate, stamp));
    }

    fn delete(&mut self) {
        let id = self.id();
        let before = block_on(self.reference.get(&id, Timestamp::default())).unwrap();
        let _ = self.compare("delete", |store| block_on(store.delete(&id)).map(|()| Ok(None)));
        self.saw(before.map_or("delete: not there", |_| "delete: there"));
    }

    fn sweep(&mut self) {
        let (now, node) = (self.now, self.node());
        let sweep = |store: &dyn TaskStore| block_on(store.as_sweep().unwrap().sweep(now)).unwrap();
        let expected = sweep(&self.reference);
        assert_eq!(sweep(&self.nodes[node]), expected, "sweep: node {node}");
        // The memory store removes what it meets, so its count may be lower.
        assert!(sweep(&self.memory) <= expected);
        assert_eq!(self.memory.len(), self.backend.keys().len(), "sweep leaves the same");
        self.saw(if expected > 0 {
            "sweep: something"
        } else {
            "sweep: nothing"
        });
    }

    fn compare_all(&self) {
        for n in 0..IDS {
            let id = TaskId::new(&format!("t{n}"));
            let get = |store: &dyn TaskStore| block_on(store.get(&id, self.now)).unwrap().map(|record| text(&record));
            let expected = get(&self.reference);
            assert_eq!(get(&self.memory), expected, "the memory store's {id}");
            for node in &self.nodes {
                assert_eq!(get(node), expected, "the compare-and-set store's {id}");
            }
        }
    }

    fn run(mut self) -> BTreeSet<&'static str> {
        for _ in 0..STEPS {
            match self.rng.below(20) {
                0..=3 => self.create(),
                4..=6 => self.get(),
                7..=14 => self.update(),
                15 => self.delete(),
                16 => self.sweep(),
                _ => self.now = self.now.saturating_add(Duration::from_millis(self.rng.below(8).into())),
            }
            self.compare_all();
        }
        if self.backend.conflicts.load(std::sync::atomic::Ordering::SeqCst) > 0 {
            self.saw("backend: conflict");
        }
        self.occurred
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

#[test]
fn stores_answer_as_the_plain_map_does_whatever_happens() {
    let only: Option<u64> = std::env::var("MCP_TASKS_SEED").ok().map(|seed| seed.parse().unwrap());
    let run = |seed| {
        let seed = Seed(seed);
        Trial::new(seed.0).run()
    };
    if let Some(seed) = only {
        run(seed);
        return;
    }
    let mut occurred = BTreeSet::new();
    for seed in 1.. {
        occurred.extend(run(seed));
        let missing: Vec<_> = WANTED.iter().filter(|what| !occurred.contains(**what)).collect();
        assert!(seed < MOST_RUNS, "never occurred: {missing:?}");
        if seed >= RUNS && missing.is_empty() {
            break;
        }
    }
    assert_eq!(occurred.len(), WANTED.len(), "and nothing unforeseen: {occurred:?}");
}
