//! The load generator: clients that do the same over and over, each as soon as it is answered.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use futures::future::try_join_all;
use tokio::runtime::{Builder, Runtime};

use crate::operation::{Client, Operation};
use crate::server::Server;

/// How many clients there are and how long they go on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) connections: usize,
    /// When they stop.
    pub(crate) slot: Duration,
    /// After how many operations, of all of them together, they stop before that.
    pub(crate) most: u64,
    /// How many operations each does before it counts.
    pub(crate) warm_up: u32,
}

/// What was seen in one go.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sample {
    pub(crate) operations: u64,
    /// More than the operations have, if some had to look again.
    pub(crate) requests: u64,
    pub(crate) took: Duration,
    /// What the server used of the CPU meanwhile.
    pub(crate) cpu: Option<Duration>,
    /// Of every operation, in nanoseconds, sorted.
    pub(crate) latencies: Vec<u32>,
}

impl Sample {
    /// Operations in a second.
    pub(crate) fn rate(&self) -> f64 {
        self.operations as f64 / self.took.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// The latency that this share of the operations does not exceed.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        let last = self.latencies.len().saturating_sub(1);
        let place = (last as f64 * share).round() as usize;
        Duration::from_nanos(self.latencies.get(place).copied().unwrap_or_default().into())
    }
}

/// A runtime for one thread, which costs less than one whose threads take work from each other.
pub(crate) fn runtime() -> anyhow::Result<Runtime> {
    Builder::new_current_thread().enable_all().build().context("no runtime")
}

/// Puts a server under load.
pub(crate) fn drive(server: &Server, operation: &Operation, load: &Load) -> anyhow::Result<Sample> {
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = load.connections.min(cores);
    // This thread is one more: it notes what the server has used until all are ready.
    let ready = Barrier::new(threads + 1);
    let left = AtomicU64::new(load.most);
    let (ready, left) = (&ready, &left);
    thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|thread| {
                let connections = (load.connections + thread) / threads;
                scope.spawn(move || clients(server, operation, load, connections, ready, left))
            })
            .collect();
        ready.wait();
        let before = server.usage();
        ready.wait();
        let mut sample = Sample::default();
        let mut spans = Vec::new();
        for handle in handles {
            let (part, span) = handle.join().map_err(|_| anyhow!("a client panicked"))??;
            sample.operations += part.operations;
            sample.requests += part.requests;
            sample.latencies.extend(part.latencies);
            spans.push(span);
        }
        let after = server.usage();
        // From the first that began to the last that ended; this thread may have been woken at any time.
        let start = spans.iter().map(|span| span.0).min();
        let end = spans.iter().map(|span| span.1).max();
        sample.took = start
            .zip(end)
            .map_or(Duration::ZERO, |(start, end)| end.saturating_duration_since(start));
        sample.cpu = before
            .zip(after)
            .map(|(before, after)| after.cpu.saturating_sub(before.cpu));
        sample.latencies.sort_unstable();
        anyhow::Ok(sample)
    })
    .with_context(|| format!("the server `{}`", server.role.as_str()))
}

/// When the clients of a thread began and when they ended.
type Span = (Instant, Instant);

/// The clients of one thread.
fn clients(
    server: &Server,
    operation: &Operation,
    load: &Load,
    connections: usize,
    ready: &Barrier,
    left: &AtomicU64,
) -> anyhow::Result<(Sample, Span)> {
    let runtime = runtime();
    let opened = runtime.and_then(|runtime| {
        let clients = runtime.block_on(try_join_all((0..connections).map(|_| async {
            let mut client = Client::open(server).await?;
            for _ in 0..load.warm_up {
                client.run(operation).await?;
            }
            client.sent = 0;
            anyhow::Ok(client)
        })))?;
        Ok((runtime, clients))
    });
    // Both waits come whatever happened, or the others would wait for ever.
    ready.wait();
    ready.wait();
    let (runtime, clients) = opened?;
    let start = Instant::now();
    let deadline = start + load.slot;
    let done = runtime.block_on(try_join_all(clients.into_iter().map(|mut client| async move {
        let mut latencies = Vec::with_capacity(4096);
        let mut now = Instant::now();
        while now < deadline && take_one(left) {
            client.run(operation).await?;
            let end = Instant::now();
            latencies.push(u32::try_from((end - now).as_nanos()).unwrap_or(u32::MAX));
            now = end;
        }
        anyhow::Ok((client.sent, latencies))
    })))?;
    let end = Instant::now();
    let mut sample = Sample::default();
    for (sent, latencies) in done {
        sample.operations += latencies.len() as u64;
        sample.requests += sent;
        sample.latencies.extend(latencies);
    }
    Ok((sample, (start, end)))
}

/// Whether there is an operation left to do.
fn take_one(left: &AtomicU64) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
        .is_ok()
}
