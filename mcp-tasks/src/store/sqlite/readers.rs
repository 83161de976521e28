//! The connections that read: some for whoever asks, some with threads of their own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Duration;

use mcp_tasks_core::StoreError;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::SqliteOptions;
use super::error::{ended, is_busy, store_error};
use super::open::{patiently, reader};
use super::queue::{answered, start};

/// Threads for what may take long: listings, and reads that found another process in the way. Each costs a connection with
/// its page cache.
const MOST_THREADS: usize = 2;

/// Connections on which callers read by themselves: as many as can read at a time, up to where more cores gain nothing from
/// one file.
const MOST_HERE: usize = 8;

type Job = Box<dyn FnOnce(&Connection) + Send>;

pub(super) struct Readers {
    here: Vec<Mutex<Connection>>,
    jobs: Sender<Job>,
    timeout: Duration,
}

impl Readers {
    pub(super) fn start(options: &SqliteOptions) -> Result<Self, StoreError> {
        let (jobs, queue) = mpsc::channel();
        let queue = Arc::new(Mutex::new(queue));
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        for _ in 0..cores.min(MOST_THREADS) {
            let connection = reader(options)?;
            let queue = queue.clone();
            start("mcp-tasks-read", move || serve(&connection, &queue))?;
        }
        let here = (0..cores.min(MOST_HERE)).map(|_| impatient_reader(options).map(Mutex::new));
        Ok(Self {
            here: here.collect::<Result<_, _>>()?,
            jobs,
            timeout: options.timeout,
        })
    }

    /// Reads on the caller's own thread, if that needs no waiting; `None` if every connection is in use or another process
    /// is in the way.
    ///
    /// For the one row of a `tasks/get`. In write-ahead mode a reader waits for no writer, and one row by its key is a few
    /// pages, which the operating system holds in memory unless the machine has just started: microseconds, where handing
    /// the work to a thread and back costs ten times as much and blocks no less. What does need waiting, recovery after a
    /// crash for one, SQLite reports as busy at once, as these connections have no patience.
    pub(super) fn here<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
    ) -> Option<Result<T, StoreError>> {
        let mut read = Some(read);
        // The first that is free, and not the next in turn: it has read what is asked for before, and has it in its cache.
        for connection in &self.here {
            let connection = match connection.try_lock() {
                Ok(connection) => connection,
                // A read that panicked has left nothing behind: its statement was reset on the way out.
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => continue,
            };
            let read = read.take()?;
            return match read(&connection) {
                Err(error) if is_busy(&error) => None,
                outcome => Some(outcome.map_err(store_error)),
            };
        }
        None
    }

    /// Reads on one of the threads.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        mut read: impl FnMut(&Connection) -> Result<T, rusqlite::Error> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, outcome) = oneshot::channel();
        let timeout = self.timeout;
        let job: Job = Box::new(move |connection| {
            if answer.is_closed() {
                return;
            }
            let done = catch_unwind(AssertUnwindSafe(|| {
                patiently(timeout, || read(connection)).map_err(StoreError::from)
            }));
            let _ = answer.send(done);
        });
        self.jobs.send(job).map_err(|_| ended())?;
        answered(outcome, timeout).await
    }
}

/// A connection that does not wait for others.
fn impatient_reader(options: &SqliteOptions) -> Result<Connection, StoreError> {
    let connection = reader(options)?;
    connection.busy_timeout(Duration::ZERO).map_err(store_error)?;
    Ok(connection)
}

/// One thread at a time waits for the next job, the others for their turn to wait.
fn serve(connection: &Connection, queue: &Mutex<Receiver<Job>>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            Ok(job) => job(connection),
            Err(_) => return,
        }
    }
}
