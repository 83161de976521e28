//! A store that keeps its contract and no more: what happens between a node and its database, put around any store.
//!
//! Time is tokio's, so that under a paused clock a storm of hours passes in no time.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_tasks_core::{
    Change, ChangeFeed, ExpiredLeases, Mutation, StoreError, StoreFuture, Sweep, TaskId, TaskRecord, TaskStore,
    Timestamp, Updated, WriteId,
};

use crate::dice::Dice;

/// What the store does besides storing. All zeros is nothing.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Faults {
    /// How often a mutation runs before the outcome of its last run is used.
    pub reruns: u32,
    /// How long an update takes to arrive.
    pub before: Duration,
    /// How long its acknowledgement takes.
    pub after: Duration,
    /// A random time up to this much more, before and after.
    pub jitter: Option<(Dice, Duration)>,
    /// How many of the next updates do not arrive.
    pub fail: u32,
    /// The acknowledgements of how many of the next updates are lost.
    pub lose: u32,
    /// The acknowledgements of how many of the next creations are lost.
    pub lose_creates: u32,
    /// How many of the next reads do not arrive.
    pub fail_gets: u32,
    /// Updates are refused, as by a disk that is full.
    pub read_only: bool,
    /// Nothing is ever answered: such a store breaks its contract.
    pub mute: bool,
    /// The longest record that an update may leave, in bytes of its JSON; a longer one is refused.
    pub longest_record: Option<usize>,
    /// Nothing works.
    pub down: bool,
    /// What happens to every operation, by chance.
    pub storm: Option<Storm>,
}

/// Chances, in thousandths, of what may happen to an operation.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Storm {
    dice: Dice,
    /// It is never applied, and fails.
    pub dropped: u64,
    /// It is applied, and fails all the same.
    pub lost: u64,
    /// It takes a random time, up to [`longest`](Self::longest), before it arrives and before it is acknowledged.
    pub delayed: u64,
    /// It is not answered until the store's time-out is over, and applied or not.
    pub hung: u64,
    /// The longest delay, each way.
    pub longest: Duration,
    /// The store's own time-out, which every store has.
    pub timeout: Duration,
}

/// That of the SQLite store.
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

    fn happens(&mut self, thousandths: u64) -> bool {
        self.dice.below(1_000) < thousandths
    }

    fn delay(&mut self) -> Duration {
        if !self.happens(self.delayed) {
            return Duration::ZERO;
        }
        let most = u64::try_from(self.longest.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(self.dice.below(most.saturating_add(1)))
    }
}

/// What happened so far, of a storm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Weather {
    /// Operations that were never applied.
    pub dropped: u64,
    /// Operations that were applied and failed.
    pub lost: u64,
    /// Operations that were delayed.
    pub delayed: u64,
    /// Operations that took until their time-out.
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

/// A store behind which `S` keeps what is not lost on the way.
pub struct FaultyStore<S> {
    inner: S,
    faults: Mutex<Faults>,
    weather: Mutex<Weather>,
}

impl<S: fmt::Debug> fmt::Debug for FaultyStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FaultyStore").field(&self.inner).finish()
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

async fn pause(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}

/// What a store says of a record that is too long for it.
fn too_long() -> StoreError {
    StoreError::Refused {
        reason: "the record is too long".to_owned(),
        source: None,
    }
}

fn read_only() -> StoreError {
    StoreError::Refused {
        reason: "the disk is full".to_owned(),
        source: None,
    }
}

impl<S: TaskStore> FaultyStore<S> {
    /// Whether the mutation would leave a longer record than is taken.
    async fn is_too_long(&self, id: &TaskId, now: Timestamp, mutation: &Mutation) -> Result<bool, StoreError> {
        let Some(longest) = lock(&self.faults).longest_record else {
            return Ok(false);
        };
        let Some(record) = self.inner.get(id, now).await? else {
            return Ok(false);
        };
        Ok(match mutation(&record) {
            Change::Write(next) => next.to_json().is_ok_and(|json| json.len() > longest),
            _ => false,
        })
    }

    /// The store, faultless until told otherwise.
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            faults: Mutex::default(),
            weather: Mutex::default(),
        }
    }

    /// The store behind it, where nothing goes wrong.
    pub const fn inner(&self) -> &S {
        &self.inner
    }

    /// Changes what goes wrong from now on.
    pub fn misbehave(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut lock(&self.faults));
    }

    /// What a storm has done so far.
    pub fn weather(&self) -> Weather {
        *lock(&self.weather)
    }

    fn stormy(&self, faults: &mut Faults, fate: &mut Fate) {
        let Some(storm) = &mut faults.storm else { return };
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
        let mut weather = lock(&self.weather);
        weather.delayed += u64::from(fate.before + fate.after > Duration::ZERO);
        match fate {
            Fate { hung: Some(_), .. } => weather.hung += 1,
            Fate { dropped: true, .. } => weather.dropped += 1,
            Fate { lost: true, .. } => weather.lost += 1,
            _ => {}
        }
    }

    /// What happens to an operation of any other kind than an update.
    fn fate(&self) -> Fate {
        let mut fate = Fate::default();
        let mut faults = lock(&self.faults);
        fate.dropped = faults.down;
        self.stormy(&mut faults, &mut fate);
        fate
    }

    fn fate_of_a_create(&self) -> Fate {
        let mut fate = self.fate();
        let mut faults = lock(&self.faults);
        if faults.lose_creates > 0 && !fate.dropped {
            faults.lose_creates -= 1;
            fate.lost = true;
        }
        fate
    }

    fn fate_of_a_get(&self) -> Fate {
        let mut fate = self.fate();
        let mut faults = lock(&self.faults);
        if faults.fail_gets > 0 {
            faults.fail_gets -= 1;
            fate.dropped = true;
        }
        fate
    }

    fn fate_of_an_update(&self) -> (Fate, u32) {
        let mut fate = Fate::default();
        let mut faults = lock(&self.faults);
        fate.before = faults.before;
        fate.after = faults.after;
        if faults.fail > 0 {
            faults.fail -= 1;
            fate.dropped = true;
        } else if faults.lose > 0 {
            faults.lose -= 1;
            fate.lost = true;
        }
        if let Some((dice, most)) = &mut faults.jitter {
            let most = u64::try_from(most.as_millis()).unwrap_or(u64::MAX) + 1;
            fate.before += Duration::from_millis(dice.below(most));
            fate.after += Duration::from_millis(dice.below(most));
        }
        self.stormy(&mut faults, &mut fate);
        (fate, faults.reruns)
    }

    async fn through<T>(
        &self,
        fate: Fate,
        operation: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        if lock(&self.faults).mute {
            return std::future::pending().await;
        }
        pause(fate.before).await;
        if let Some(hang) = fate.hung {
            if hang.applied {
                let _ = operation.await;
            }
            tokio::time::sleep(hang.timeout).await;
            return Err(unavailable("it did not answer in time"));
        }
        if fate.dropped || lock(&self.faults).down {
            return Err(unavailable("the operation did not arrive"));
        }
        let answer = operation.await;
        pause(fate.after).await;
        if fate.lost && answer.is_ok() {
            return Err(unavailable("the acknowledgement was lost"));
        }
        answer
    }
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

impl<S: TaskStore> TaskStore for FaultyStore<S> {
    fn create(&self, record: TaskRecord) -> StoreFuture<'_, Arc<TaskRecord>> {
        // The operation within begins when it has arrived, not when it is sent: some stores do their work in the call.
        Box::pin(async move {
            self.through(self.fate_of_a_create(), async { self.inner.create(record).await })
                .await
        })
    }

    fn get<'a>(&'a self, id: &'a TaskId, now: Timestamp) -> StoreFuture<'a, Option<Arc<TaskRecord>>> {
        Box::pin(async move {
            self.through(self.fate_of_a_get(), async { self.inner.get(id, now).await })
                .await
        })
    }

    fn update<'a>(
        &'a self,
        id: &'a TaskId,
        now: Timestamp,
        write: WriteId,
        mutation: Mutation,
    ) -> StoreFuture<'a, Option<Updated>> {
        Box::pin(async move {
            let (fate, reruns) = self.fate_of_an_update();
            let mutation = rerun(mutation, reruns);
            let update = async {
                if lock(&self.faults).read_only {
                    return Err(read_only());
                }
                if self.is_too_long(id, now, &mutation).await? {
                    return Err(too_long());
                }
                self.inner.update(id, now, write, mutation).await
            };
            self.through(fate, update).await
        })
    }

    fn delete<'a>(&'a self, id: &'a TaskId) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.through(self.fate(), async { self.inner.delete(id).await }).await })
    }

    fn as_sweep(&self) -> Option<&dyn Sweep> {
        self.inner.as_sweep().is_some().then_some(self)
    }

    fn as_expired_leases(&self) -> Option<&dyn ExpiredLeases> {
        self.inner.as_expired_leases().is_some().then_some(self)
    }

    fn as_change_feed(&self) -> Option<&dyn ChangeFeed> {
        self.inner.as_change_feed()
    }
}

impl<S: TaskStore> Sweep for FaultyStore<S> {
    fn sweep(&self, now: Timestamp) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            let sweep = async {
                match self.inner.as_sweep() {
                    Some(sweep) => sweep.sweep(now).await,
                    None => Ok(0),
                }
            };
            self.through(self.fate(), sweep).await
        })
    }
}

impl<S: TaskStore> ExpiredLeases for FaultyStore<S> {
    fn expired_leases(&self, now: Timestamp, limit: usize) -> StoreFuture<'_, Vec<Arc<TaskRecord>>> {
        Box::pin(async move {
            let look = async {
                match self.inner.as_expired_leases() {
                    Some(leases) => leases.expired_leases(now, limit).await,
                    None => Ok(Vec::new()),
                }
            };
            self.through(self.fate(), look).await
        })
    }
}
