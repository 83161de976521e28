//! A tool from its call to its end: runs of its body, and what lies between them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcp_tasks_core::{
    ClientCapabilities, Decision, EntryKind, Json, Ledger, MemoryStore, Refusal, TaskId, TaskRecord, TaskStore,
    Timestamp,
};
use rmcp::ErrorData;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::body_run::{BodyRun, Stopped};
use super::recorder::Recorder;
use super::script::Script;
use super::{TestClock, TestEnding, TestFailure, TestOutcome, TestQuestion, TestTool, json_of};
use crate::call::round::Round;
use crate::config::settings::Settings;
use crate::config::start::Warnings;
use crate::config::tools;
use crate::host::Clock;
use crate::host::extension::TasksExtension;
use crate::host::operations::{Admission, admit};
use crate::run::ending::Ending;
use crate::run::{Carrier, Deferral, InCall, Run, RunStart};
use crate::task::TaskEngine;
use crate::tool::invocation::Invocation;
use crate::tool::registry::RegisteredTool;
use crate::tool::state::StateMap;

/// The id of every task in a test: there is one.
const ID: &str = "test";

pub(super) struct TestRun<'a> {
    test: &'a TestTool,
    engine: TaskEngine,
    /// Holds the record of the task, for what a body does to it; what its runs come to is kept here.
    store: Arc<MemoryStore>,
    tool: Arc<RegisteredTool>,
    states: Arc<StateMap>,
    capabilities: ClientCapabilities,
    script: Script,
    round: Round,
    is_task: bool,
    deferral: Deferral,
    progress: Option<f64>,
    recorder: Arc<Recorder>,
    questions: Vec<TestQuestion>,
    runs: u32,
    started: Timestamp,
    clock: TestClock,
}

impl<'a> TestRun<'a> {
    pub(super) fn new(test: &'a TestTool) -> Result<Self, TestFailure> {
        let config = test.config.clone().build()?;
        let settings = Settings::read(&config)?;
        let registry = tools::collect(
            vec![test.descriptor],
            false,
            &config,
            &test.states,
            &mut Warnings::default(),
        )?;
        let Some(tool) = registry.iter().next().cloned() else {
            return internal_fault("the tool was not registered");
        };
        let store = Arc::new(MemoryStore::new());
        let states = Arc::new(test.states.clone());
        let clock = test.clock.clone().unwrap_or_default();
        let shared = Arc::new(clock.clone());
        let engine = TaskEngine::new(store.clone(), registry, states.clone(), settings, shared, 0);
        let mut round = Round::first(TaskId::new(ID), tool.version.clone());
        round.ledger = test.ledger.clone();
        Ok(Self {
            test,
            engine,
            store,
            states,
            capabilities: capabilities(&test.capabilities),
            script: test.script.clone(),
            round,
            is_task: false,
            deferral: Deferral::Refused,
            progress: None,
            recorder: Arc::default(),
            questions: Vec::new(),
            runs: 0,
            started: clock.now(),
            clock,
            tool,
        })
    }

    pub(super) async fn run(mut self) -> Result<TestOutcome, TestFailure> {
        let extension = if self.test.declares_tasks {
            TasksExtension::Declared
        } else {
            TasksExtension::Undeclared
        };
        let admitted = admit(&self.tool, &self.test.caller, extension, &self.test.arguments).await;
        let ending = match admitted {
            Err(error) => TestEnding::Error(error),
            Ok(Admission::Answered(result)) => TestEnding::Result(*result),
            Ok(Admission::Run { decision, deferral }) => {
                self.deferral = deferral;
                let deferred = self.round.ledger.entries().iter().any(|e| e.kind == EntryKind::Defer);
                if decision == Decision::Task && (deferral == Deferral::Refused || deferred) {
                    self.become_task().await;
                }
                self.run_to_end().await?
            }
        };
        let unused = self.script.unused();
        if !unused.is_empty() {
            let ending = Box::new(ending);
            return Err(TestFailure::UnusedAnswers { unused, ending });
        }
        Ok(self.outcome(ending).await)
    }

    async fn run_to_end(&mut self) -> Result<TestEnding, TestFailure> {
        loop {
            let (ending, ledger) = self.run_body(self.test.replaying).await?;
            match ending {
                Ending::Returned(_) => {
                    let ending = into_ending(ending);
                    self.recorder.stored(&ledger);
                    if self.test.replaying {
                        self.round.ledger = as_stored(&ledger);
                        self.replay_end(&ending).await?;
                    }
                    return Ok(ending);
                }
                // Stopped after an entry, to be run again.
                Ending::Fenced => self.round.ledger = as_stored(&ledger),
                Ending::Suspended(suspension) => {
                    self.recorder.stored(&suspension.ledger);
                    self.round.park(suspension);
                    while !self.round.open.is_empty() {
                        self.answer()?;
                    }
                    self.recorder.stored(&self.round.ledger);
                    self.round.ledger = as_stored(&self.round.ledger);
                    if let Some(later) = &self.test.later_capabilities {
                        self.capabilities = capabilities(later);
                    }
                }
                Ending::Deferred(ledger) => {
                    self.recorder.stored(&ledger);
                    self.round.ledger = as_stored(&ledger);
                    self.become_task().await;
                }
                Ending::Panicked(words) => return Err(TestFailure::Panicked(words)),
                Ending::Faulted(fault) => return Err(TestFailure::Fault(fault)),
                // A test cancels nothing, an expired task is found where time goes on, and a mismatch is a failure already.
                Ending::Cancelled | Ending::Expired | Ending::Refused | Ending::Asleep(..) | Ending::Diverged(_) => {
                    return internal_fault("a run was cancelled");
                }
            }
        }
    }

    /// Replays the whole ledger: the body has to end alike.
    async fn replay_end(&mut self, first: &TestEnding) -> Result<(), TestFailure> {
        let (ending, _) = self.run_body(false).await?;
        let again = match ending {
            Ending::Returned(_) => {
                let again = into_ending(ending);
                if again == *first {
                    return Ok(());
                }
                again.to_string()
            }
            Ending::Suspended(suspension) => {
                let asked: Vec<String> = suspension
                    .open
                    .iter()
                    .map(|open| TestQuestion::of(open).to_string())
                    .collect();
                format!("the question {}", asked.join(", "))
            }
            Ending::Panicked(words) => format!("a panic: {words}"),
            Ending::Faulted(fault) => fault.to_string(),
            _ => "no end".to_owned(),
        };
        let first = Box::new(first.clone());
        Err(TestFailure::EndsDifferently { first, again })
    }

    /// Runs the body once; also returns the ledger that the run leaves.
    async fn run_body(&mut self, hold: bool) -> Result<(Ending, Ledger), TestFailure> {
        self.runs += 1;
        let carrier: Box<dyn Carrier> = if self.is_task {
            Box::new(self.engine.carrier(self.round.id.clone()))
        } else {
            Box::new(InCall)
        };
        let deferral = match (self.is_task, self.deferral) {
            (true, Deferral::Pending) => Deferral::Done,
            (_, deferral) => deferral,
        };
        let clock = self.clock.clone();
        let run = Run::new(RunStart {
            carrier,
            id: self.round.id.clone(),
            capabilities: self.capabilities.clone(),
            ledger: &self.round.ledger,
            deferral,
            clock: Arc::new(clock.clone()),
            token: CancellationToken::new(),
            progress: self.progress,
        });
        let body = (self.tool.descriptor.call)(Invocation::new(
            run.clone(),
            self.test.caller.clone(),
            self.states.clone(),
            self.test.arguments.clone(),
        ));
        let mut body_run = BodyRun::new(run, body, clock, self.recorder.clone(), hold);
        let ending = loop {
            match body_run.next().await {
                Stopped::Ended(ending) => break ending,
                Stopped::Hangs => return Err(TestFailure::Hangs),
                Stopped::Sleeps(wake) => {
                    if let Some(deadline) = self.deadline().await.filter(|deadline| wake > *deadline) {
                        return Err(TestFailure::Expired { wake, deadline });
                    }
                    self.clock.set_to(wake);
                }
            }
        };
        let left = body_run.finish();
        self.progress = left.progress;
        if let Some(mismatch) = left.mismatch {
            return Err(TestFailure::Mismatch {
                mismatch: Box::new(mismatch),
                run: self.runs,
                ending: matches!(ending, Ending::Returned(_)).then(|| Box::new(into_ending(ending))),
            });
        }
        match self.recorder.recorded_twice() {
            Some(name) => Err(TestFailure::StepRepeated { name }),
            None => Ok((ending, left.ledger)),
        }
    }

    /// Answers the open questions, once each.
    fn answer(&mut self) -> Result<(), TestFailure> {
        let mut responses = BTreeMap::new();
        let mut refusals = Vec::new();
        let asked: Vec<TestQuestion> = self.round.open.iter().map(TestQuestion::of).collect();
        self.questions.extend(asked.iter().cloned());
        for question in &asked {
            let Some(answer) = self.script.answer(question) else {
                let (question, unused) = (Box::new(question.clone()), self.script.unused());
                return Err(TestFailure::Unanswered { question, unused });
            };
            match answer.to_response(question.kind()) {
                Ok(response) => {
                    responses.insert(question.key().to_owned(), response);
                }
                Err(detail) => refusals.push((question.key(), Refusal::client(detail))),
            }
        }
        for (key, refusal) in refusals {
            self.round.refuse(key, &refusal);
        }
        self.round.answer(&responses);
        let is_open = |question: &&TestQuestion| self.round.open.iter().any(|open| *open.key == *question.key());
        match asked.iter().find(is_open) {
            Some(question) => {
                let question = Box::new(question.clone());
                Err(TestFailure::NoAnswer { question })
            }
            None => Ok(()),
        }
    }

    async fn become_task(&mut self) {
        self.is_task = true;
        let record = TaskRecord::new(
            self.round.id.clone(),
            self.tool.name.clone(),
            json_of(&Value::Object(self.test.arguments.clone())),
            self.capabilities.clone(),
            self.clock.now(),
            self.tool.ttl,
            self.tool.poll_interval,
        );
        self.store.create(record).await.unwrap_or_else(internal_fault);
    }

    async fn record(&self) -> Option<Arc<TaskRecord>> {
        let id = &self.round.id;
        self.store.get(id, self.clock.now()).await.ok().flatten()
    }

    async fn deadline(&self) -> Option<Timestamp> {
        self.record().await.and_then(|record| record.deadline())
    }

    async fn outcome(self, ending: TestEnding) -> TestOutcome {
        let ttl = self.record().await.and_then(|record| record.ttl_ms);
        let mut recording = self.recorder.finish();
        TestOutcome {
            ending,
            is_task: self.is_task,
            questions: self.questions,
            steps: recording.steps(),
            progress: recording.progress,
            runs: self.runs,
            elapsed: self.clock.now().saturating_since(self.started),
            ttl: ttl.map(Duration::from_millis),
            ledgers: recording.ledgers,
        }
    }
}

fn into_ending(ending: Ending) -> TestEnding {
    let outcome = match ending {
        Ending::Returned(Ok(result)) => Ok(result),
        Ending::Returned(Err(error)) => error.into_outcome(),
        _ => Err(ErrorData::internal_error("the tool did not return", None)),
    };
    match outcome {
        Ok(result) => TestEnding::Result(result),
        Err(error) => TestEnding::Error(error),
    }
}

fn capabilities(declared: &Value) -> ClientCapabilities {
    ClientCapabilities::new(json_of(declared))
}

/// The ledger as it comes back from a store.
fn as_stored(ledger: &Ledger) -> Ledger {
    Json::of(ledger)
        .and_then(|stored| stored.decode())
        .unwrap_or_else(internal_fault)
}

fn internal_fault<T>(what: impl fmt::Display) -> T {
    panic!("{what}; this is a fault in mcp-tasks, please report it")
}
