//! The threads that read.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_tasks_core::StoreError;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::SqliteOptions;
use super::error::ended;
use super::open::{patiently, reader};
use super::queue::{answered, start};

/// Reads are short and mostly answered from memory, so a few threads do; each costs a connection with its page cache.
const MOST_READERS: usize = 4;

type Job = Box<dyn FnOnce(&Connection) + Send>;

pub(super) struct Readers {
    jobs: Sender<Job>,
    timeout: Duration,
}

impl Readers {
    pub(super) fn start(options: &SqliteOptions) -> Result<Self, StoreError> {
        let (jobs, queue) = mpsc::channel();
        let queue = Arc::new(Mutex::new(queue));
        let count = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MOST_READERS));
        for _ in 0..count {
            let connection = reader(options)?;
            let queue = queue.clone();
            start("mcp-tasks-read", move || serve(&connection, &queue))?;
        }
        Ok(Self {
            jobs,
            timeout: options.timeout,
        })
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
