//! The thread that writes, many at a time into one commit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use mcp_tasks_core::StoreError;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::SqliteOptions;
use super::error::{busy, ended, store_error};
use super::open::{Patience, patiently, writer};
use super::queue::{Answer, answered, start};
use super::rows::{Rows, Seen};

/// How many writes share a commit at most: so many that flushing no longer counts, so few that the first of them waits for
/// milliseconds.
const BATCH: usize = 256;

pub(super) struct Writer {
    jobs: Sender<Box<dyn Job>>,
    timeout: Duration,
}

impl Writer {
    pub(super) fn start(options: &SqliteOptions) -> Result<Self, StoreError> {
        let connection = writer(options)?;
        let (jobs, queue) = mpsc::channel();
        let timeout = options.timeout;
        start("mcp-tasks-write", move || {
            let seen = Seen::default();
            Thread {
                connection,
                seen,
                timeout,
            }
            .serve(&queue);
        })?;
        Ok(Self { jobs, timeout })
    }

    /// Makes one write, together with whatever others are waiting, and returns once it is committed. `write` may run
    /// several times, and what it answered last counts.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        write: impl FnMut(&mut Rows<'_>) -> Result<Result<T, StoreError>, rusqlite::Error> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, outcome) = oneshot::channel();
        let job = Box::new(Write {
            write,
            done: None,
            answer,
        });
        self.jobs.send(job).map_err(|_| ended())?;
        answered(outcome, self.timeout).await
    }
}

/// A write that waits for its turn.
trait Job: Send {
    /// Whether anybody waits for it still.
    fn is_wanted(&self) -> bool;
    /// Makes it, inside a transaction, and notes the answer.
    fn run(&mut self, rows: &mut Rows<'_>) -> Result<(), rusqlite::Error>;
    /// Gives the noted answer, once the transaction is committed, or the failure.
    fn answer(self: Box<Self>, failure: Option<StoreError>);
}

struct Write<T, W> {
    write: W,
    done: Option<Answer<T>>,
    answer: oneshot::Sender<Answer<T>>,
}

impl<T: Send, W> Job for Write<T, W>
where
    W: FnMut(&mut Rows<'_>) -> Result<Result<T, StoreError>, rusqlite::Error> + Send,
{
    fn is_wanted(&self) -> bool {
        !self.answer.is_closed()
    }

    fn run(&mut self, rows: &mut Rows<'_>) -> Result<(), rusqlite::Error> {
        // A mutation that panics does so before anything was written for it.
        self.done = Some(match catch_unwind(AssertUnwindSafe(|| (self.write)(rows))) {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(error)) => return Err(error),
            Err(panic) => Err(panic),
        });
        Ok(())
    }

    fn answer(self: Box<Self>, failure: Option<StoreError>) {
        let done = match failure {
            Some(failure) => Ok(Err(failure)),
            None => self.done.unwrap_or_else(|| Ok(Err(ended()))),
        };
        let _ = self.answer.send(done);
    }
}

struct Thread {
    connection: Connection,
    seen: Seen,
    timeout: Duration,
}

impl Thread {
    fn serve(mut self, queue: &Receiver<Box<dyn Job>>) {
        while let Ok(first) = queue.recv() {
            let waiting = std::iter::once(first).chain(queue.try_iter());
            let mut batch: Vec<_> = waiting.take(BATCH).filter(|job| job.is_wanted()).collect();
            if batch.is_empty() {
                continue;
            }
            match self.commit(&mut batch) {
                Ok(()) => batch.into_iter().for_each(|job| job.answer(None)),
                Err(Patience::Over) => batch.into_iter().for_each(|job| job.answer(Some(busy()))),
                Err(Patience::Failed(error)) if batch.len() == 1 => {
                    let mut failure = Some(store_error(error));
                    batch.into_iter().for_each(|job| job.answer(failure.take()));
                }
                // One of them fails, and the others are not to fail with it.
                Err(Patience::Failed(_)) => batch
                    .into_iter()
                    .filter(|job| job.is_wanted())
                    .for_each(|job| self.alone(job)),
            }
        }
    }

    fn alone(&mut self, job: Box<dyn Job>) {
        let mut batch = [job];
        let failure = self.commit(&mut batch).err().map(StoreError::from);
        let [job] = batch;
        job.answer(failure);
    }

    /// Runs the jobs in one transaction. Unless it is committed, nothing of it is there.
    fn commit(&mut self, batch: &mut [Box<dyn Job>]) -> Result<(), Patience> {
        let connection = &self.connection;
        let statement = |sql: &str| connection.prepare_cached(sql)?.execute([]).map(drop);
        patiently(self.timeout, || statement("BEGIN IMMEDIATE"))?;
        let mut rows = Rows {
            connection,
            seen: &mut self.seen,
        };
        let outcome = batch
            .iter_mut()
            .try_for_each(|job| job.run(&mut rows))
            .and_then(|()| statement("COMMIT"));
        outcome.map_err(|error| {
            self.seen.clear();
            // Some failures have rolled it back already.
            if !connection.is_autocommit()
                && let Err(error) = statement("ROLLBACK")
            {
                tracing::error!(%error, "a SQLite transaction cannot be rolled back");
            }
            Patience::Failed(error)
        })
    }
}
