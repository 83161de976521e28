//! A store that does what a test's script says: the one double of this project's tests.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Dice;
use crate::store::{ChangeFeed, ChangeHub, ChangeStream, ExpiredLeases, Mutation, StoreError, StoreFuture, Sweep};
use crate::store::{TaskStore, Updated};
use crate::{Change, RecordError, TaskId, TaskRecord, Timestamp, WriteId};

/// Waits for so long. This crate has no timer, so the test brings its runtime's: under a paused clock a storm of hours
/// passes in no time.
pub type Sleep = fn(Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// What is written in place of what a mutation made of the record.
pub type Rewrite = Arc<dyn Fn(&TaskRecord, Change) -> Change + Send + Sync>;

/// What happens to the operations of one kind.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Plan {
    /// How long an operation takes to arrive.
    pub before: Duration,
    /// How long its acknowledgement takes.
    pub after: Duration,
    /// A random time up to this much more, before and after.
    pub jitter: Option<(Dice, Duration)>,
    /// How many of the next operations do not arrive.
    pub fail: u32,
    /// The acknowledgements of how many of the next operations are lost.
    pub lose: u32,
}

/// An ability that a store may have besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ability {
    /// [`ChangeFeed`].
    ChangeFeed,
    /// [`ExpiredLeases`].
    ExpiredLeases,
    /// [`Sweep`].
    Sweep,
}

/// What the store does besides storing; as it is by default, nothing.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Script {
    /// Creations.
    pub create: Plan,
    /// Reads.
    pub get: Plan,
    /// Updates.
    pub update: Plan,
    /// Deletions, sweeps and looks for expired leases.
    pub other: Plan,
    /// Chances of what may happen to every operation.
    pub storm: Option<Storm>,
    /// Nothing works.
    pub down: bool,
    /// Nothing is ever answered: such a store breaks its contract.
    pub mute: bool,
    /// Creations are put aside, unacknowledged, until they [land](ScriptedStore::land).
    pub puts_creations_aside: bool,
    /// Updates go through one at a time, as over a pool of one connection.
    pub one_at_a_time: bool,
    /// Updates are refused, as by a disk that is full.
    pub read_only: bool,
    /// The longest record that an update may leave, in bytes of its JSON; a longer one is refused.
    pub longest_record: Option<usize>,
    /// A task whose record another release wrote.
    pub unreadable: Option<TaskId>,
    /// How often a mutation runs before the outcome of its last run is used.
    pub reruns: u32,
    /// What updates write instead.
    pub rewrite: Option<Rewrite>,
    /// Abilities of the store within that this one does not show.
    pub hides: &'static [Ability],
    /// It finds the expired leases among the tasks it [knows](ScriptedStore::known), where the store within has not the ability.
    pub scans: bool,
    /// What it tells of changes, in place of what the store within does.
    pub feed: Option<ChangeHub>,
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").finish_non_exhaustive()
    }
}

/// Chances, in thousandths, of what may happen to an operation.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Storm {
    dice: Dice,
    /// It is never applied, and fails.
    pub dropped: u32,
    /// It is applied, and fails all the same.
    pub lost: u32,
    /// It takes a random time, up to [`longest`](Self::longest), before it arrives and before it is acknowledged.
    pub delayed: u32,
    /// It is not answered until the store's time-out is over, and applied or not.
    pub hung: u32,
    /// The longest delay, each way.
    pub longest: Duration,
    /// The store's own time-out, which every store has.
    pub timeout: Duration,
}

/// That of the stores of this project.
const TIMEOUT: Duration = Duration::from_secs(10);

impl Storm {
    /// The storm of this seed: a calm one, until chances are set.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self {
            dice: Dice::new(seed),
            dropped: 0,
            lost: 0,
            delayed: 0,
            hung: 0,
            longest: Duration::ZERO,
            timeout: TIMEOUT,
        }
    }

    fn happens(&mut self, thousandths: u32) -> bool {
        self.dice.below(1_000) < thousandths
    }

    fn delay(&mut self) -> Duration {
        if self.happens(self.delayed) {
            up_to(&mut self.dice, self.longest)
        } else {
            Duration::ZERO
        }
    }
}

fn up_to(dice: &mut Dice, most: Duration) -> Duration {
    let most = u32::try_from(most.as_millis()).unwrap_or(u32::MAX - 1);
    Duration::from_millis(dice.below(most + 1).into())
}

/// What happened so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// Creations that were asked for.
    pub creates: u64,
    /// Reads that were asked for.
    pub gets: u64,
    /// Updates that were asked for.
    pub updates: u64,
    /// Updates that wrote.
    pub applied: u64,
    /// Expired records that a sweep removed.
    pub swept: u64,
    /// Operations that a storm did not let arrive.
    pub dropped: u64,
    /// Operations whose acknowledgement was lost in a storm.
    pub lost: u64,
    /// Operations that a storm delayed.
    pub delayed: u64,
    /// Operations that took until their time-out, in a storm.
    pub hung: u64,
}

/// What happens to one operation.
#[derive(Debug, Default)]
struct Fate {
    before: Duration,
    after: Duration,
    dropped: bool,
    lost: bool,
    hung: Option<Hang>,
}

/// How long an operation is not answered, and whether it has arrived.
#[derive(Debug, Clone, Copy)]
struct Hang {
    timeout: Duration,
    applied: bool,
}

/// The store `S` behind what the [`Script`] says, with an account of what was asked of it.
pub struct ScriptedStore<S> {
    inner: S,
    sleep: Sleep,
    script: Mutex<Script>,
    tally: Mutex<Tally>,
    known: Mutex<Vec<TaskId>>,
    aside: Mutex<Vec<TaskRecord>>,
    written: Mutex<Vec<Arc<TaskRecord>>>,
    turn: async_lock::Mutex<()>,
}

impl<S: fmt::Debug> fmt::Debug for ScriptedStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ScriptedStore").field(&self.inner).finish()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unavailable(reason: &str) -> StoreError {
    StoreError::Unavailable {
        reason: reason.to_owned(),
        source: None,
    }
}

fn refused(reason: &str) -> StoreError {
    StoreError::Refused {
        reason: reason.to_owned(),
        source: None,
    }
}

/// Whether one of so many is left.
fn spend(left: &mut u32) -> bool {
    let spent = *left > 0;
    *left = left.saturating_sub(1);
    spent
}

/// The mutation, run so many times; it has to come to the same every time.
fn rerun(mutation: Mutation, times: u32) -> Mutation {
    Arc::new(move |record| {
        let first = mutation(record);
        for _ in 1..times {
            assert_eq!(mutation(record), first, "a mutation is a function of the record");
        }
        first
    })
}

impl<S: TaskStore> ScriptedStore<S> {
    /// The store, which only stores until told otherwise.
    pub fn new(inner: S, sleep: Sleep) -> Self {
        Self {
            inner,
            sleep,
            script: Mutex::default(),
            tally: Mutex::default(),
            known: Mutex::default(),
            aside: Mutex::default(),
            written: Mutex::default(),
            turn: async_lock::Mutex::new(()),
        }
    }

    /// With this script from the beginning.
    #[must_use]
    pub fn with(self, change: impl FnOnce(&mut Script)) -> Self {
        self.script(change);
        self
    }

    /// Changes what happens from now on.
    pub fn script(&self, change: impl FnOnce(&mut Script)) {
        change(&mut lock(&self.script));
    }

    /// The store behind it, where nothing goes wrong.
    pub const fn inner(&self) -> &S {
        &self.inner
    }

    /// What was asked of it so far, and what became of that.
    pub fn tally(&self) -> Tally {
        *lock(&self.tally)
    }

    /// The tasks whose creation was asked for, in their order, and those it was [told](Self::know) of.
    pub fn known(&self) -> Vec<TaskId> {
        lock(&self.known).clone()
    }

    /// Has a [scan](Script::scans) find this task too, which was created in another way.
    pub fn know(&self, id: &TaskId) {
        lock(&self.known).push(id.clone());
    }

    /// Every version of every task that updates wrote, in their order.
    pub fn written(&self) -> Vec<Arc<TaskRecord>> {
        lock(&self.written).clone()
    }

    /// Stores what was [put aside](Script::puts_creations_aside).
    ///
    /// # Errors
    /// Those of the store within.
    pub async fn land(&self) -> Result<(), StoreError> {
        let aside = std::mem::take(&mut *lock(&self.aside));
        for record in aside {
            self.inner.create(record).await?;
        }
        Ok(())
    }

    fn count(&self, count: impl FnOnce(&mut Tally)) {
        count(&mut lock(&self.tally));
    }

    fn reads<T>(&self, what: impl FnOnce(&Script) -> T) -> T {
        what(&lock(&self.script))
    }

    fn shows(&self, ability: Ability) -> bool {
        !self.reads(|script| script.hides.contains(&ability))
    }

    fn fate(&self, plan: fn(&mut Script) -> &mut Plan) -> Fate {
        let mut script = lock(&self.script);
        let plan = plan(&mut script);
        let mut fate = Fate {
            before: plan.before,
            after: plan.after,
            ..Fate::default()
        };
        if let Some((dice, most)) = &mut plan.jitter {
            fate.before += up_to(dice, *most);
            fate.after += up_to(dice, *most);
        }
        fate.dropped = spend(&mut plan.fail);
        fate.lost = !fate.dropped && spend(&mut plan.lose);
        if let Some(storm) = &mut script.storm {
            self.strike(storm, &mut fate);
        }
        fate
    }

    fn strike(&self, storm: &mut Storm, fate: &mut Fate) {
        fate.before += storm.delay();
        fate.after += storm.delay();
        fate.dropped |= storm.happens(storm.dropped);
        fate.lost |= storm.happens(storm.lost);
        if storm.happens(storm.hung) {
            fate.hung = Some(Hang {
                timeout: storm.timeout,
                applied: storm.happens(500),
            });
        }
        self.count(|tally| {
            tally.delayed += u64::from(fate.before + fate.after > Duration::ZERO);
            match fate {
                Fate { hung: Some(_), .. } => tally.hung += 1,
                Fate { dropped: true, .. } => tally.dropped += 1,
                Fate { lost: true, .. } => tally.lost += 1,
                _ => {}
            }
        });
    }

    async fn pause(&self, time: Duration) {
        if !time.is_zero() {
            (self.sleep)(time).await;
        }
    }

    /// The operation begins when it has arrived, not when it is sent: some stores do their work in the call.
    async fn through<T>(
        &self,
        plan: fn(&mut Script) -> &mut Plan,
        operation: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let fate = self.fate(plan);
        if self.reads(|script| script.mute) {
            return std::future::pending().await;
        }
        self.pause(fate.before).await;
        if let Some(hang) = fate.hung {
            if hang.applied {
                let _ = operation.await;
            }
            self.pause(hang.timeout).await;
            return Err(unavailable("it did not answer in time"));
        }
        if fate.dropped || self.reads(|script| script.down) {
            return Err(unavailable("the operation did not arrive"));
        }
        let answer = operation.await;
        self.pause(fate.after).await;
        if fate.lost && answer.is_ok() {
            return Err(unavailable("the acknowledgement was lost"));
        }
        answer
    }

    async fn write(
        &self,
        id: &TaskId,
        now: Timestamp,
        write: WriteId,
        mutation: Mutation,
    ) -> Result<Option<Updated>, StoreError> {
        let script = self.reads(Script::clone);
        if script.read_only {
            return Err(refused("the disk is full"));
        }
        let mut mutation = rerun(mutation, script.reruns);
        if let Some(longest) = script.longest_record
            && let Some(present) = self.inner.get(id, now).await?
            && let Change::Write(next) = mutation(&present)
            && next.to_json().is_ok_and(|json| json.len() > longest)
        {
            return Err(refused("the record is too long"));
        }
        if let Some(rewrite) = script.rewrite {
            let plain = mutation;
            mutation = Arc::new(move |record| rewrite(record, plain(record)));
        }
        let updated = self.inner.update(id, now, write, mutation).await?;
        if let Some(updated) = updated.as_ref().filter(|updated| updated.applied) {
            self.count(|tally| tally.applied += 1);
            let mut written = lock(&self.written);
            // A repeated write is shown what it wrote before.
            let of_this_task = written.iter().rev().find(|record| record.task_id == *id);
            if of_this_task.is_none_or(|last| !Arc::ptr_eq(last, &updated.record)) {
                written.push(updated.record.clone());
            }
        }
        Ok(updated)
    }
}

impl<S: TaskStore> TaskStore for ScriptedStore<S> {
    fn create(&self, record: TaskRecord) -> StoreFuture<'_, Arc<TaskRecord>> {
        self.count(|tally| tally.creates += 1);
        lock(&self.known).push(record.task_id.clone());
        Box::pin(async move {
            if self.reads(|script| script.puts_creations_aside) {
                lock(&self.aside).push(record);
                return std::future::pending().await;
            }
            let create = async { self.inner.create(record).await };
            self.through(|script| &mut script.create, create).await
        })
    }

    fn get<'a>(&'a self, id: &'a TaskId, now: Timestamp) -> StoreFuture<'a, Option<Arc<TaskRecord>>> {
        self.count(|tally| tally.gets += 1);
        let get = async move {
            if self.reads(|script| script.unreadable.as_ref() == Some(id)) {
                return Err(StoreError::Unreadable {
                    id: id.clone(),
                    source: RecordError::NewerFormat { found: 7_000 },
                });
            }
            self.inner.get(id, now).await
        };
        Box::pin(self.through(|script| &mut script.get, get))
    }

    fn update<'a>(
        &'a self,
        id: &'a TaskId,
        now: Timestamp,
        write: WriteId,
        mutation: Mutation,
    ) -> StoreFuture<'a, Option<Updated>> {
        self.count(|tally| tally.updates += 1);
        Box::pin(async move {
            let _turn = match self.reads(|script| script.one_at_a_time) {
                true => Some(self.turn.lock().await),
                false => None,
            };
            let update = self.write(id, now, write, mutation);
            self.through(|script| &mut script.update, update).await
        })
    }

    fn delete<'a>(&'a self, id: &'a TaskId) -> StoreFuture<'a, ()> {
        let delete = async move { self.inner.delete(id).await };
        Box::pin(self.through(|script| &mut script.other, delete))
    }

    fn as_sweep(&self) -> Option<&dyn Sweep> {
        let has = self.inner.as_sweep().is_some() && self.shows(Ability::Sweep);
        has.then_some(self)
    }

    fn as_expired_leases(&self) -> Option<&dyn ExpiredLeases> {
        let has = self.inner.as_expired_leases().is_some() || self.reads(|script| script.scans);
        (has && self.shows(Ability::ExpiredLeases)).then_some(self)
    }

    fn as_change_feed(&self) -> Option<&dyn ChangeFeed> {
        let has = self.inner.as_change_feed().is_some() || self.reads(|script| script.feed.is_some());
        (has && self.shows(Ability::ChangeFeed)).then_some(self)
    }
}

impl<S: TaskStore> Sweep for ScriptedStore<S> {
    fn sweep(&self, now: Timestamp) -> StoreFuture<'_, u64> {
        let sweep = async move {
            let swept = match self.inner.as_sweep() {
                Some(sweep) => sweep.sweep(now).await?,
                None => 0,
            };
            self.count(|tally| tally.swept += swept);
            Ok(swept)
        };
        Box::pin(self.through(|script| &mut script.other, sweep))
    }
}

impl<S: TaskStore> ExpiredLeases for ScriptedStore<S> {
    fn expired_leases(&self, now: Timestamp, limit: usize) -> StoreFuture<'_, Vec<Arc<TaskRecord>>> {
        let look = async move {
            if let Some(leases) = self.inner.as_expired_leases() {
                return leases.expired_leases(now, limit).await;
            }
            let mut found = Vec::new();
            for id in self.known() {
                let record = self.inner.get(&id, now).await?;
                found.extend(record.filter(|record| record.is_abandoned(now)));
            }
            found.truncate(limit);
            Ok(found)
        };
        Box::pin(self.through(|script| &mut script.other, look))
    }
}

impl<S: TaskStore> ChangeFeed for ScriptedStore<S> {
    fn changes(&self) -> ChangeStream {
        match (self.reads(|script| script.feed.clone()), self.inner.as_change_feed()) {
            (Some(told), _) => told.listen(),
            (None, Some(feed)) => feed.changes(),
            // Not shown as an ability then.
            (None, None) => ChangeHub::new().listen(),
        }
    }
}
