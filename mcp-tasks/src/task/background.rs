//! What goes on beside requests: jobs on timers and queues, and the follow-up of single writes.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::{CancellationToken, DropGuard};

/// Work that comes up again and again.
///
/// A job owns the parts it works with and never the engine, whose end is also the job's.
pub(crate) trait Job: Send + 'static {
    /// Resolves when there is something to do. May be dropped at any time, and is not called again then.
    fn wait(&mut self) -> impl Future<Output = ()> + Send;

    /// Does it. Runs to its end, also when the node stops meanwhile.
    fn work(&mut self) -> impl Future<Output = ()> + Send;
}

/// How long a job goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// Until the node takes on no more executions.
    Closing,
    /// Until the last handle of the engine is dropped.
    EngineDropped,
}

/// Runs jobs in tasks of their own.
#[derive(Debug, Clone)]
pub(crate) struct Runner {
    closing: CancellationToken,
    dropped: CancellationToken,
}

impl Runner {
    /// Runs `job` again and again.
    pub(crate) fn run(&self, until: Until, mut job: impl Job) {
        let Self { closing, dropped } = self.clone();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = closing.cancelled(), if until == Until::Closing => return,
                    () = dropped.cancelled() => return,
                    () = job.wait() => {}
                }
                job.work().await;
            }
        });
    }

    /// Runs `work` once, unless the last handle of the engine is dropped first.
    pub(crate) fn run_once(&self, work: impl Future<Output = ()> + Send + 'static) {
        let dropped = self.dropped.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = dropped.cancelled() => {}
                () = work => {}
            }
        });
    }
}

/// The jobs of one engine. Dropping this ends them.
#[derive(Debug)]
pub(crate) struct Background {
    runner: Runner,
    is_started: AtomicBool,
    _ends_jobs: DropGuard,
}

impl Background {
    /// For a node that takes on no more executions once `closing` fires.
    pub(crate) fn new(closing: CancellationToken) -> Self {
        let dropped = CancellationToken::new();
        Self {
            _ends_jobs: dropped.clone().drop_guard(),
            runner: Runner { closing, dropped },
            is_started: AtomicBool::new(false),
        }
    }

    pub(crate) const fn runner(&self) -> &Runner {
        &self.runner
    }

    /// Starts the jobs that `start` gives to the runner, on the present runtime, unless that was done before.
    pub(crate) fn start(&self, start: impl FnOnce(&Runner)) {
        // Every request calls this: all but the first only read.
        if self.is_started.load(Ordering::Acquire) || self.is_started.swap(true, Ordering::AcqRel) {
            return;
        }
        start(&self.runner);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use super::*;

    const INTERVAL: Duration = Duration::from_secs(10);

    /// Takes as long for its work as it waits for it.
    struct Counting(Arc<AtomicUsize>);

    impl Job for Counting {
        async fn wait(&mut self) {
            tokio::time::sleep(INTERVAL).await;
        }

        async fn work(&mut self) {
            tokio::time::sleep(INTERVAL).await;
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn jobs_are_started_once_and_end_with_what_they_were_started_for() {
        let closing = CancellationToken::new();
        let background = Background::new(closing.clone());
        let (closes, stays) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for _ in 0..2 {
            background.start(|runner| {
                runner.run(Until::Closing, Counting(closes.clone()));
                runner.run(Until::EngineDropped, Counting(stays.clone()));
            });
        }
        let counts = || (closes.load(Ordering::Relaxed), stays.load(Ordering::Relaxed));
        tokio::time::sleep(INTERVAL * 7 / 2).await;
        assert_eq!(counts(), (1, 1));
        // Both are at work.
        closing.cancel();
        tokio::time::sleep(INTERVAL * 4).await;
        assert_eq!(counts(), (2, 3), "work that has begun is done");
        drop(background);
        tokio::time::sleep(INTERVAL * 10).await;
        assert_eq!(counts(), (2, 4));
        assert_eq!(Arc::strong_count(&stays), 1, "the job is dropped");
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_is_done_once_ends_with_the_engine() {
        let background = Background::new(CancellationToken::new());
        let count = Arc::new(AtomicUsize::new(0));
        for time in [INTERVAL, INTERVAL * 3] {
            let count = count.clone();
            background.runner().run_once(async move {
                tokio::time::sleep(time).await;
                count.fetch_add(1, Ordering::Relaxed);
            });
        }
        tokio::time::sleep(INTERVAL * 2).await;
        drop(background);
        tokio::time::sleep(INTERVAL * 2).await;
        assert_eq!(count.load(Ordering::Relaxed), 1);
    }
}
