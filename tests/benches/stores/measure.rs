//! The store and the driver by hand, in turn.

use std::pin::Pin;
use std::time::{Duration, Instant};

use mcp_tasks_tests::table::median;
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Runtime;

use super::work::Bench;

/// Does an operation so many times, one after the other.
pub(crate) type Batch = Box<dyn Fn(u64) -> Pin<Box<dyn Future<Output = Bench<()>> + Send>>>;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// How many turns each side has.
    rounds: usize,
    /// How long one takes, roughly.
    slot: Duration,
    /// How many tasks there are to look at in no order.
    pub(crate) others: usize,
}

impl Effort {
    /// Fifteen turns have a median that a few disturbed ones do not move. A turn is hundreds of operations, and longer than
    /// what the scheduler gives to another program. The other tasks are more than what the SQLite store keeps parsed.
    pub(crate) const FULL: Self = Self {
        rounds: 15,
        slot: Duration::from_millis(40),
        others: 4_096,
    };
    pub(crate) const QUICK: Self = Self {
        rounds: 1,
        slot: Duration::from_millis(1),
        others: 64,
    };
}

/// What an operation takes, in seconds.
#[derive(Debug, Clone, Copy)]
struct Turn {
    time: f64,
    cpu: f64,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Measured {
    turns: Vec<(Turn, Turn)>,
}

impl Measured {
    /// The times, the store's and by hand, and the ratio.
    pub(crate) fn times(&self) -> [f64; 3] {
        self.medians(|turn| turn.time)
    }

    /// The CPU time of this process, the store's and by hand, and the ratio.
    pub(crate) fn cpu(&self) -> [f64; 3] {
        self.medians(|turn| turn.cpu)
    }

    fn medians(&self, of: impl Fn(&Turn) -> f64) -> [f64; 3] {
        [
            median(self.turns.iter().map(|(store, _)| of(store))),
            median(self.turns.iter().map(|(_, by_hand)| of(by_hand))),
            median(self.turns.iter().map(|(store, by_hand)| of(store) / of(by_hand))),
        ]
    }
}

/// Measures both in turn, the one that begins changing each time.
pub(crate) fn alternate(runtime: &Runtime, effort: Effort, store: &Batch, by_hand: &Batch) -> Bench<Measured> {
    let (times, times_by_hand) = (fitting(runtime, effort, store)?, fitting(runtime, effort, by_hand)?);
    let mut turns = Vec::new();
    for round in 0..effort.rounds {
        let first = (round % 2 == 0).then(|| turn(runtime, store, times)).transpose()?;
        let by_hand = turn(runtime, by_hand, times_by_hand)?;
        let store = match first {
            Some(turn) => turn,
            None => turn(runtime, store, times)?,
        };
        turns.push((store, by_hand));
    }
    Ok(Measured { turns })
}

/// Warms up, and finds how many operations fill a turn.
fn fitting(runtime: &Runtime, effort: Effort, batch: &Batch) -> Bench<u64> {
    let mut times = 1;
    loop {
        // The fastest of three: a first operation connects, and another program may come in between.
        let mut took = f64::INFINITY;
        for _ in 0..3 {
            took = took.min(turn(runtime, batch, times)?.time * times as f64);
        }
        let slots = took / effort.slot.as_secs_f64();
        if slots > 0.5 {
            return Ok(((times as f64 / slots) as u64).max(1));
        }
        // No more than tenfold at a time, as the first operations are slower than the rest.
        times = (times as f64 / slots.max(0.1)).ceil() as u64 + 1;
    }
}

fn turn(runtime: &Runtime, batch: &Batch, times: u64) -> Bench<Turn> {
    let (start, cpu) = (Instant::now(), cpu_time());
    runtime.block_on(runtime.spawn(batch(times)))??;
    Ok(Turn {
        time: start.elapsed().as_secs_f64() / times as f64,
        cpu: cpu_time().saturating_sub(cpu).as_secs_f64() / times as f64,
    })
}

/// Of all threads of this process, those that have ended included.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap_or_default()
}
