//! Random operations against a store and a plain map: every answer and every record is compared.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::records::{at, raw};
use super::{Case, Dice};
use crate::{ClientCapabilities, StoreError, TaskId, TaskRecord, TaskStore, Timestamp, Updated, WriteId};

use mutate::Mutate;
use plain::{Changed, Created, PlainMap};

mod mutate;
mod plain;

/// Few ids, so that operations meet.
const IDS: u32 = 5;

/// With the records compared after each, some three thousand operations: seconds for a store over a network.
const STEPS: u32 = 450;

/// A seed by which something never occurs within so many steps is a mistake of this file.
const MOST_STEPS: u32 = 5_000;

/// Time passes in such steps, and deadlines lie half-way between them: where a record is there, a backend's own clock has
/// minutes to go before it removes it.
const SLOT: Duration = Duration::from_secs(1_800);
const HALF_SLOT: Duration = Duration::from_secs(900);

/// How often an operation is repeated while the store is unavailable. Each attempt has the store's own time-out.
const ATTEMPTS: u32 = 100;

/// What has to occur before a run may end.
const WANTED: [&str; 24] = [
    "create: new",
    "create: taken",
    "create: repeated",
    "create: over an expired one",
    "create: after a delete",
    "create: without a write id",
    "get: there",
    "get: unknown",
    "get: expired",
    "update: applied",
    "update: ended",
    "update: kept",
    "update: repeated",
    "update: repeated behind a later write",
    "update: unknown",
    "update: expired",
    "update: fenced",
    "update: already ended",
    "update: suspended",
    "update: answered",
    "update: extended",
    "update: taken over",
    "delete: there",
    "delete: not there",
];

/// A run of random operations on a store, each compared with what a plain map makes of it. A seed always gives the same
/// operations, whatever the store answers, and a failure says which it was.
///
/// ```
/// # fn block_on<F: Future>(future: F) -> F::Output { let mut future = std::pin::pin!(future); loop {
/// #     if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) { break output } } }
/// use mcp_tasks_core::MemoryStore;
/// use mcp_tasks_core::store::contract::Differential;
///
/// for seed in 1..4 {
///     block_on(Differential::new(seed).sweeping().run(&[&MemoryStore::new()]));
/// }
/// ```
#[derive(Debug, Clone)]
#[must_use = "it does nothing until it runs"]
pub struct Differential {
    seed: u64,
    sweeps: bool,
}

impl Differential {
    /// The run of this seed.
    pub const fn new(seed: u64) -> Self {
        Self { seed, sweeps: false }
    }

    /// With sweeps in between, which remove whatever is expired by the run's clock, beginning in the year 2100: for a
    /// database that nothing else uses meanwhile.
    pub const fn sweeping(mut self) -> Self {
        self.sweeps = true;
        self
    }

    /// Runs until every operation and every kind of conflict has occurred, and some hundred steps at least.
    ///
    /// `handles` are ways to the same records, such as two connections to one database: each operation takes one of them.
    ///
    /// # Panics
    /// If the store gives another answer than the plain map, or none.
    pub async fn run(&self, handles: &[&dyn TaskStore]) {
        let mut trial = Trial::begin(self, handles).await;
        while trial.step < STEPS || !trial.is_complete() {
            assert!(
                trial.step < MOST_STEPS,
                "{self:?}: never occurred: {:?}",
                trial.missing()
            );
            trial.step().await;
        }
        for id in &trial.ids {
            let _ = insist(async || handles[0].delete(id).await).await;
        }
    }
}

/// Random operations are answered as by a plain map, see [`Differential`].
pub async fn random_operations_are_answered_as_by_a_plain_map(store: &dyn TaskStore) {
    Differential::new(1).run(&[store]).await;
}

/// The same operation until it is answered, as the runtime repeats it.
async fn insist<T>(mut attempt: impl AsyncFnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let mut attempts = 1;
    loop {
        match attempt().await {
            Err(error) if error.is_retryable() && attempts < ATTEMPTS => attempts += 1,
            answer => return answer,
        }
    }
}

fn text(record: &TaskRecord) -> String {
    record.to_json().expect("a record has a JSON form")
}

struct Trial<'a> {
    plan: &'a Differential,
    handles: &'a [&'a dyn TaskStore],
    dice: Dice,
    step: u32,
    now: Timestamp,
    plain: PlainMap,
    ids: Vec<TaskId>,
    writes: u128,
    /// Writes that were made, to be repeated.
    updates: Vec<(TaskId, WriteId, Mutate, Timestamp)>,
    creations: Vec<TaskRecord>,
    ever: BTreeSet<TaskId>,
    occurred: BTreeSet<&'static str>,
}

impl<'a> Trial<'a> {
    async fn begin(plan: &'a Differential, handles: &'a [&'a dyn TaskStore]) -> Self {
        let case = Case::new(handles[0], "differential");
        let mut ids = Vec::new();
        for number in 0..IDS {
            ids.push(case.id(number).await);
        }
        Self {
            plan,
            handles,
            dice: Dice::new(plan.seed),
            step: 0,
            now: at(0),
            plain: PlainMap::default(),
            ids,
            writes: 0,
            updates: Vec::new(),
            creations: Vec::new(),
            ever: BTreeSet::new(),
            occurred: BTreeSet::new(),
        }
    }

    fn missing(&self) -> Vec<&'static str> {
        let sweeps = ["sweep: something", "sweep: nothing"];
        let wanted = WANTED
            .into_iter()
            .chain(sweeps.into_iter().filter(|_| self.plan.sweeps));
        wanted.filter(|what| !self.occurred.contains(what)).collect()
    }

    fn is_complete(&self) -> bool {
        self.missing().is_empty()
    }

    fn saw(&mut self, what: &'static str) {
        self.occurred.insert(what);
    }

    /// What a failed comparison begins with.
    fn place(&self, what: &str) -> String {
        format!("seed {}, step {}, {what}", self.plan.seed, self.step)
    }

    fn id(&mut self) -> TaskId {
        self.ids[self.dice.place(self.ids.len())].clone()
    }

    fn handle(&mut self) -> &'a dyn TaskStore {
        self.handles[self.dice.place(self.handles.len())]
    }

    fn next_write(&mut self) -> WriteId {
        self.writes += 1;
        WriteId::new(self.writes)
    }

    async fn step(&mut self) {
        self.step += 1;
        match self.dice.below(20) {
            0..=3 => self.create().await,
            4..=6 => self.get().await,
            7..=15 => self.update().await,
            16 => self.delete().await,
            17 if self.plan.sweeps => self.sweep().await,
            _ => self.now = self.now.saturating_add(SLOT * self.dice.below(3)),
        }
        for n in 0..self.ids.len() {
            let (id, store) = (self.ids[n].clone(), self.handle());
            let found = insist(async || store.get(&id, self.now).await).await;
            let found = found.unwrap_or_else(|error| panic!("{}: {error}", self.place("get")));
            let expected = self.plain.get(&id, self.now).map(text);
            assert_eq!(
                found.map(|record| text(&record)),
                expected,
                "{} is another record",
                self.place(id.as_str())
            );
        }
    }

    fn new_record(&mut self) -> TaskRecord {
        let ttl = [
            None,
            Some(HALF_SLOT),
            Some(SLOT + HALF_SLOT),
            Some(4 * SLOT + HALF_SLOT),
        ][self.dice.place(4)];
        let mut record = TaskRecord::new(
            self.id(),
            "encode".into(),
            raw(r#"{"b":1.0e2,"a":18446744073709551616,"escaped":"\u0041"}"#),
            ClientCapabilities::new(raw("{}")),
            self.now,
            ttl,
            Duration::from_secs(2),
        );
        record.last_write = (!self.dice.one_in(8)).then(|| self.next_write());
        // Half of them run under a lease that is over at the next instant.
        if self.dice.one_in(2) {
            record.execution.node = Some("first".into());
            record.execution.lease_until = Some(self.now);
        }
        record
    }

    async fn create(&mut self) {
        let again = self
            .creations
            .last()
            .filter(|record| record.created_at == self.now)
            .cloned();
        // A creation is repeated at once or not at all: later its clock would be behind everybody's.
        let record = match again {
            Some(record) if self.dice.one_in(2) => record,
            _ => self.new_record(),
        };
        let id = record.task_id.clone();
        let was_stored = self.plain.stored(&id).is_some();
        let expected = self.plain.create(record.clone());
        let store = self.handle();
        let answer = insist(async || store.create(record.clone()).await).await;
        let place = self.place("create");
        let expected_record = match &expected {
            Created::New(record) | Created::Repeated(record) => Some(text(record)),
            Created::Taken => None,
        };
        match answer {
            Ok(created) => assert_eq!(Some(text(&created)), expected_record, "{place}"),
            // Without a write id a store cannot know its own creation again, if the acknowledgement of its backend, or of
            // an earlier attempt, was lost. Whether the record is there is compared below.
            Err(StoreError::AlreadyExists { .. }) if record.last_write.is_none() => {}
            Err(StoreError::AlreadyExists { .. }) => assert_eq!(None, expected_record, "{place}: the id is taken"),
            Err(error) => panic!("{place}: {error}"),
        }
        self.saw(match expected {
            Created::Taken => "create: taken",
            Created::Repeated(_) => "create: repeated",
            Created::New(_) if was_stored => "create: over an expired one",
            Created::New(_) if self.ever.contains(&id) => "create: after a delete",
            Created::New(_) => "create: new",
        });
        if record.last_write.is_none() {
            self.saw("create: without a write id");
        } else {
            self.creations.push(record);
        }
        self.ever.insert(id);
    }

    async fn get(&mut self) {
        let (id, store) = (self.id(), self.handle());
        let found = insist(async || store.get(&id, self.now).await).await;
        let found = found.unwrap_or_else(|error| panic!("{}: {error}", self.place("get")));
        let expected = self.plain.get(&id, self.now);
        assert_eq!(found.as_deref(), expected, "{}", self.place("get"));
        self.saw(match (found, self.plain.stored(&id)) {
            (Some(_), _) => "get: there",
            (None, Some(_)) => "get: expired",
            (None, None) => "get: unknown",
        });
    }

    async fn update(&mut self) {
        let recent = self.updates.len().min(6);
        let again = recent > 0 && self.dice.one_in(5);
        let (id, write, mutate, stamp) = if again {
            self.updates[self.updates.len() - 1 - self.dice.place(recent)].clone()
        } else {
            (self.id(), self.next_write(), Mutate::random(&mut self.dice), self.now)
        };
        let before = self.plain.stored(&id).cloned();
        let mutation = mutate.clone().mutation(stamp);
        let expected = self.plain.update(&id, self.now, write, &mutation);
        let store = self.handle();
        let answer = insist(async || store.update(&id, self.now, write, mutation.clone()).await).await;
        let place = self.place(&format!("update {mutate:?}"));
        let answer = answer.unwrap_or_else(|error| panic!("{place}: {error}"));
        let wanted = match &expected {
            Changed::Nothing => None,
            Changed::Written(record) | Changed::Repeated(record) => Some(Updated::new(Arc::new(record.clone()), true)),
            Changed::Kept(record) => Some(Updated::new(Arc::new(record.clone()), false)),
        };
        let plainly = |updated: Option<Updated>| updated.map(|updated| (text(&updated.record), updated.applied));
        assert_eq!(plainly(answer), plainly(wanted), "{place}");
        match (&expected, before) {
            (Changed::Nothing, Some(_)) => self.saw("update: expired"),
            (Changed::Nothing, None) => self.saw("update: unknown"),
            (Changed::Repeated(_), _) => self.saw("update: repeated"),
            (Changed::Written(record), _) => self.saw(match mutate {
                _ if record.status.is_terminal() => "update: ended",
                Mutate::Suspend(_) => "update: suspended",
                Mutate::Answer(_) => "update: answered",
                Mutate::Extend(..) => "update: extended",
                Mutate::Claim(_) => "update: taken over",
                _ => "update: applied",
            }),
            (Changed::Kept(record), _) => {
                if again {
                    self.saw("update: repeated behind a later write");
                }
                self.saw(match mutate {
                    _ if record.status.is_terminal() => "update: already ended",
                    _ if mutate.is_fenced(record) => "update: fenced",
                    _ => "update: kept",
                });
            }
        }
        self.updates.push((id, write, mutate, stamp));
    }

    async fn delete(&mut self) {
        let (id, store) = (self.id(), self.handle());
        let answer = insist(async || store.delete(&id).await).await;
        answer.unwrap_or_else(|error| panic!("{}: {error}", self.place("delete")));
        let was_there = self.plain.delete(&id);
        self.saw(if was_there {
            "delete: there"
        } else {
            "delete: not there"
        });
    }

    async fn sweep(&mut self) {
        let store = self.handle();
        let expected = self.plain.sweep(self.now);
        if let Some(sweep) = store.as_sweep() {
            let swept = sweep.sweep(self.now).await;
            let swept = swept.unwrap_or_else(|error| panic!("{}: {error}", self.place("sweep")));
            // A store may have removed what it came across, and a backend what its own clock says.
            assert!(
                swept <= expected,
                "{}: {swept} instead of {expected}",
                self.place("sweep")
            );
        }
        self.saw(if expected > 0 {
            "sweep: something"
        } else {
            "sweep: nothing"
        });
    }
}
