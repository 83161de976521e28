//! Work over a store: tasks, from the call that creates one to its end, on this node and others.
//!
//! [`TaskEngine`] is made of parts, each of which owns its fields: the records in the store ([`records`]), writes whose
//! outcome is not known ([`unconfirmed`]), the executions of this node ([`executions`]) with what starts and runs them
//! ([`worker`]), what it takes on ([`admission`]), leases and the recovery of what no node runs ([`leases`], [`recovery`],
//! [`claim_queue`], [`wake_queue`]), the tasks that clients watch ([`watchers`]), and the jobs beside requests
//! ([`background`]). What clients ask for is in the files named for it: [`create`], [`find`], [`update`], [`cancel`],
//! [`listener`].

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_tasks_core::{StoreError, TaskStore, error_chain};
use rmcp::ErrorData;

use crate::config::settings::Settings;
use crate::run::clock::Clock;
use crate::tool::registry::Registry;
use crate::tool::state::StateMap;
use admission::Admission;
use background::{Background, Runner, Until};
use claim_queue::ClaimQueue;
use executions::Executions;
use feed::HandOnChanges;
use first_write::FirstWrite;
use leases::Leases;
use records::TaskRecords;
use recovery::Recovery;
use recovery::jobs::{ClaimQueuedTasks, LookForAbandoned};
use sweep::Sweep;
use unconfirmed::Reconciler;
use wake_queue::{WakeDueTasks, WakeQueue};
use watchers::Watchers;
use worker::{Worker, WorkerParts};

mod admission;
mod background;
mod cancel;
mod claim_queue;
mod create;
mod executions;
mod extend;
mod feed;
mod find;
mod first_write;
mod grace;
mod leases;
#[cfg_attr(
    not(any(feature = "http", feature = "stdio")),
    allow(dead_code, reason = "without a transport of ours no client listens")
)]
mod listener;
mod patience;
mod records;
mod recovery;
mod single_use;
mod sweep;
mod unconfirmed;
mod update;
mod wake_queue;
#[cfg_attr(
    not(any(feature = "http", feature = "stdio")),
    allow(dead_code, reason = "without a transport of ours no client listens")
)]
mod watchers;
mod worker;

pub(crate) use create::NewTask;
#[cfg(feature = "testing")]
pub(crate) use extend::InTask;
pub(crate) use grace::GraceAnswer;
#[cfg(any(feature = "http", feature = "stdio"))]
pub(crate) use listener::{ListenerEvent, TaskListener};

/// Everything that works on tasks on this node; cloning shares it.
#[derive(Clone)]
pub(crate) struct TaskEngine {
    parts: Arc<Parts>,
}

/// What an engine is made of.
pub(crate) struct Parts {
    settings: Settings,
    registry: Arc<Registry>,
    records: Arc<TaskRecords>,
    executions: Arc<Executions>,
    admission: Arc<Admission>,
    first_write: Arc<FirstWrite>,
    leases: Arc<Leases>,
    claims: Arc<ClaimQueue>,
    wake_queue: Arc<WakeQueue>,
    watchers: Arc<Watchers>,
    worker: Worker,
    recovery: Arc<Recovery>,
    background: Background,
}

impl Deref for TaskEngine {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}

impl fmt::Debug for TaskEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskEngine")
            .field("records", &self.records)
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TaskEngine {
    /// An engine over `store`; `seed` is a random number that no other node has.
    pub(crate) fn new(
        store: Arc<dyn TaskStore>,
        registry: Registry,
        states: Arc<StateMap>,
        settings: Settings,
        clock: Arc<dyn Clock>,
        seed: u128,
    ) -> Self {
        let registry = Arc::new(registry);
        let executions = Arc::<Executions>::default();
        let watchers = Arc::<Watchers>::default();
        let wake_queue = Arc::<WakeQueue>::default();
        let claims = Arc::new(ClaimQueue::new(settings.work, store.as_expired_leases().is_some()));
        let admission = Arc::new(Admission::new(
            settings.quota_open_per_principal,
            settings.quota_running,
        ));
        let background = Background::new(executions.closing().clone());
        let records = Arc::new(TaskRecords::new(
            store,
            clock,
            settings.lease,
            seed,
            executions.clone(),
            watchers.clone(),
        ));
        let reconciler = Arc::new(Reconciler::new(records.clone(), background.runner().clone()));
        let first_write = Arc::new(FirstWrite::new(records.clone(), admission.clone(), reconciler.clone()));
        let leases = Arc::new(Leases::new(records.clone(), executions.clone(), admission.clone()));
        let worker = Worker::new(WorkerParts {
            is_enabled: settings.work,
            registry: registry.clone(),
            states,
            records: records.clone(),
            executions: executions.clone(),
            admission: admission.clone(),
            leases: leases.clone(),
            wake_queue: wake_queue.clone(),
            reconciler,
            first_write: first_write.clone(),
        });
        let recovery = Arc::new(Recovery {
            registry: registry.clone(),
            records: records.clone(),
            executions: executions.clone(),
            admission: admission.clone(),
            leases: leases.clone(),
            claims: claims.clone(),
            worker: worker.clone(),
        });
        Self {
            parts: Arc::new(Parts {
                settings,
                registry,
                records,
                executions,
                admission,
                first_write,
                leases,
                claims,
                wake_queue,
                watchers,
                worker,
                recovery,
                background,
            }),
        }
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether the store answers.
    pub(crate) async fn check_store(&self) -> Result<(), StoreError> {
        self.records.check_store().await
    }

    /// Takes on no more executions.
    pub(crate) fn close(&self) {
        self.executions.close();
    }

    /// Stops taking on executions, waits for those that run, at most for `patience`, and stops the rest; returns how many
    /// those were.
    pub(crate) async fn drain(&self, patience: Duration) -> usize {
        self.executions.drain(patience).await
    }

    /// Starts what goes on beside requests, once, on the runtime of the first request.
    pub(crate) fn start_background(&self) {
        self.background.start(|runner| self.run_jobs(runner));
    }

    fn run_jobs(&self, runner: &Runner) {
        let store = self.records.store();
        if store.as_sweep().is_some() {
            let sweep = Sweep {
                records: self.records.clone(),
                admission: self.admission.clone(),
                interval: self.settings.sweep_interval,
            };
            runner.run(Until::Closing, sweep);
        }
        if let Some(feed) = store.as_change_feed() {
            let (watchers, executions, claims) = (self.watchers.clone(), self.executions.clone(), self.claims.clone());
            // Executions that still run while the node stops are told of cancellations.
            let changes = HandOnChanges::new(feed.changes(), watchers, executions, claims);
            runner.run(Until::EngineDropped, changes);
        }
        let wake = WakeDueTasks {
            queue: self.wake_queue.clone(),
            clock: self.records.clock().clone(),
            claims: self.claims.clone(),
        };
        runner.run(Until::Closing, wake);
        if self.worker.is_enabled() {
            let (recovery, wake_queue) = (self.recovery.clone(), self.wake_queue.clone());
            runner.run(
                Until::Closing,
                ClaimQueuedTasks::new(recovery, wake_queue, runner.clone()),
            );
        }
        if store.as_expired_leases().is_some() {
            runner.run(Until::Closing, LookForAbandoned::new(self.recovery.clone()));
        }
    }

    /// # Errors
    /// When the node stops, and takes on no more executions.
    fn refuse_if_closing(&self) -> Result<(), ErrorData> {
        if self.executions.is_closing() {
            return Err(ErrorData::internal_error(
                "the server is shutting down; try again on another",
                None,
            ));
        }
        Ok(())
    }

    /// The carrier of a run that is the first execution of the task `id`.
    #[cfg(feature = "testing")]
    pub(crate) fn carrier(&self, id: mcp_tasks_core::TaskId) -> InTask {
        InTask {
            records: self.records.clone(),
            admission: self.admission.clone(),
            id,
            epoch: 1,
        }
    }
}

/// One answer for a task that is unknown, expired, or another caller's, so that none can be told from the others (Tasks
/// extension, "Protocol Errors" and "Security Considerations").
pub(crate) fn unknown_task() -> ErrorData {
    ErrorData::invalid_params("Unknown task: it does not exist, has expired, or is not yours", None)
}

/// `-32603` for a store that cannot be used; the detail goes into the log.
pub(crate) fn store_failed(error: &StoreError) -> ErrorData {
    tracing::error!(error = %error_chain(error), "the task store failed");
    let advice = if error.is_retryable() {
        "try again"
    } else {
        "see the server's log"
    };
    ErrorData::internal_error(format!("the task store failed; {advice}"), None)
}
