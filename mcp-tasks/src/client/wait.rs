//! From a task to its result.

mod trouble;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use self::trouble::Trouble;
use super::listen::{Listener, Told};
use super::pace::after;
use super::wire::MAX_MESSAGE;
use super::{
    ClientError, DetailedTask, Inner, InputError, InputNeeded, InputRequest, Observer, SavedTask, TaskEvent, TaskState,
    ToolResult,
};

/// How often a task is looked at while the server tells of it: a notification can be lost, a task must not be.
const SAFETY_LOOK: Duration = Duration::from_secs(30);

/// How often a subscription is opened in one wait. A server that ends every one of them is asked instead.
const MAX_SUBSCRIPTIONS: u32 = 5;

/// How often a task shows a question after its answer was acknowledged, before the answer is sent once more. Servers
/// that take an answer in later than they acknowledge it do so within a look or two.
const LOOKS_BEFORE_RESENDING: u32 = 3;

/// How often an answer is sent again; each time twice as many looks go by.
const MAX_RESENDINGS: u32 = 4;

/// How much a task may ask in all, in bytes: as much as one message may have, and some ten thousand ordinary questions. What
/// was asked is kept, so that nothing is asked twice, and a server may ask for ever.
const MAX_ASKED: usize = MAX_MESSAGE;

/// How far behind the end of its time a task that shows no change is given up: clocks differ, and sweeps are late.
const GRACE: Duration = Duration::from_secs(300);

type Looking = BoxFuture<'static, Result<Box<DetailedTask>, ClientError>>;
type Asking = BoxFuture<'static, Result<Value, InputError>>;

/// What happens next to a task that is waited for.
enum Next {
    Looked(Result<Box<DetailedTask>, ClientError>),
    Told(Told),
    Answered(Result<Value, InputError>),
    Time,
}

/// One wait.
pub(super) struct Wait<'a> {
    client: &'a Arc<Inner>,
    observer: &'a Observer,
    saved: &'a mut SavedTask,
    looking: Option<Looking>,
    next_look: Instant,
    listener: Option<Listener>,
    is_told: bool,
    subscriptions: u32,
    asking: Option<(InputRequest, Asking)>,
    shown: Vec<InputRequest>,
    has_looked: bool,
    /// Looks since answers were sent, and how often they were sent again.
    stale_looks: u32,
    resendings: u32,
    trouble: Option<Trouble>,
    sending_trouble: Option<Trouble>,
    last: Option<DetailedTask>,
}

impl<'a> Wait<'a> {
    pub(super) fn new(
        client: &'a Arc<Inner>,
        observer: &'a Observer,
        saved: &'a mut SavedTask,
        first_look: Duration,
    ) -> Self {
        Self {
            client,
            observer,
            saved,
            looking: None,
            next_look: after(Instant::now(), first_look),
            listener: None,
            is_told: false,
            subscriptions: 0,
            asking: None,
            shown: Vec::new(),
            has_looked: false,
            stale_looks: 0,
            resendings: 0,
            trouble: None,
            sending_trouble: None,
            last: None,
        }
    }

    /// Until the task has ended, or cannot be waited for.
    pub(super) async fn run(mut self) -> Result<ToolResult, ClientError> {
        loop {
            let outcome = match self.next().await {
                Next::Time => {
                    let (client, id) = (self.client.clone(), self.saved.id());
                    self.looking = Some(Box::pin(async move { client.get(&id).await.map(Box::new) }));
                    None
                }
                Next::Looked(Ok(task)) => {
                    self.trouble = None;
                    self.has_looked = true;
                    self.observe(*task).await?
                }
                Next::Looked(Err(error)) => {
                    self.retry(error, false)?;
                    None
                }
                Next::Told(Told::Task(task)) => self.observe(*task).await?,
                Next::Told(Told::Granted) => {
                    self.is_told = true;
                    // What changed before the subscription was there.
                    self.next_look = Instant::now();
                    None
                }
                Next::Told(Told::Refused) => {
                    self.listener = None;
                    self.subscriptions = MAX_SUBSCRIPTIONS;
                    None
                }
                Next::Told(Told::Ended) => {
                    self.listener = None;
                    self.is_told = false;
                    // What changed since it last told.
                    self.next_look = self.next_look.min(after(Instant::now(), self.client.pacing.floor));
                    None
                }
                Next::Answered(answer) => {
                    self.answered(answer).await?;
                    None
                }
            };
            if let Some(result) = outcome {
                return Ok(result);
            }
        }
    }

    async fn next(&mut self) -> Next {
        let Self {
            looking,
            next_look,
            listener,
            asking,
            ..
        } = self;
        let next = tokio::select! {
            answer = async { (&mut asking.as_mut().expect("it is asked").1).await }, if asking.is_some() => Next::Answered(answer),
            task = async { looking.as_mut().expect("it is looked at").await }, if looking.is_some() => Next::Looked(task),
            told = async { listener.as_mut().expect("it is listened to").next().await }, if listener.is_some() => Next::Told(told),
            () = sleep_until(*next_look), if looking.is_none() => Next::Time,
        };
        if matches!(next, Next::Looked(_)) {
            self.looking = None;
        }
        next
    }

    /// When the next look is, after one that went well.
    fn schedule(&mut self) {
        let interval = self.client.pacing.interval(self.saved.poll_interval());
        // An answer on its way is looked after all the same: a server that drops it tells nothing.
        let at_rest = self.shown.is_empty() || self.asking.is_some();
        let interval = if self.is_told && at_rest {
            interval.max(SAFETY_LOOK)
        } else {
            interval
        };
        self.next_look = after(Instant::now(), interval);
    }

    /// After a request that failed: when to try again, or that it is over.
    fn retry(&mut self, error: ClientError, sending: bool) -> Result<(), ClientError> {
        let source = match &error {
            ClientError::Transport { source, .. } if source.is_temporary => source,
            ClientError::UnknownTask(_) if self.saved.is_past_due(self.client.clock.now()) => {
                return Err(ClientError::Expired(Box::new(self.saved.clone())));
            }
            _ => return Err(error.of_task(self.saved)),
        };
        let now = Instant::now();
        let pacing = &self.client.pacing;
        // A look that goes well says nothing about the answers.
        let trouble = if sending {
            &mut self.sending_trouble
        } else {
            &mut self.trouble
        };
        let trouble = trouble.get_or_insert_with(|| Trouble::new(pacing, now));
        let asked_for = source.retry_after.unwrap_or_default();
        let Some(pause) = trouble.pause(pacing, now, asked_for) else {
            return Err(error.of_task(self.saved));
        };
        tracing::debug!(%error, ?pause, "a request about a task failed, it is tried again");
        self.observer.tell(TaskEvent::Retrying {
            error: &error,
            after: pause,
        });
        self.next_look = after(now, pause);
        Ok(())
    }

    /// Takes in what the server said of the task.
    async fn observe(&mut self, task: DetailedTask) -> Result<Option<ToolResult>, ClientError> {
        let mut changed = self.saved.note(&task);
        let moved = self.last.as_ref().is_none_or(|last| {
            (&last.state, &last.status_message, last.ttl) != (&task.state, &task.status_message, task.ttl)
        });
        if moved {
            self.observer.tell(TaskEvent::Status(&task));
        } else if self
            .last
            .as_ref()
            .is_some_and(|last| last.last_updated_at != task.last_updated_at)
        {
            tracing::debug!("the server moved lastUpdatedAt, and nothing else");
        }
        match &task.state {
            TaskState::Completed { result } => return Ok(Some(result.clone())),
            TaskState::Failed { error } => {
                let failed = ClientError::Failed {
                    id: task.id,
                    error: Box::new(error.clone()),
                    status_message: task.status_message,
                    hint: None,
                };
                return Err(failed.hinted(&self.client.answering));
            }
            TaskState::Cancelled => {
                return Err(ClientError::Cancelled {
                    id: task.id,
                    status_message: task.status_message,
                });
            }
            TaskState::Working => self.shown.clear(),
            TaskState::InputRequired { requests } => self.shown.clone_from(requests),
        }
        self.last = Some(task);
        changed |= self.saved.settle(&self.shown);
        if changed {
            self.observer.tell(TaskEvent::Saved(self.saved));
        }
        // What was told is no look; the next one is when it was.
        if std::mem::take(&mut self.has_looked) {
            self.schedule();
            self.stale_looks += 1;
        }
        self.past_due()?;
        self.listen();
        self.ask().await?;
        Ok(None)
    }

    /// A server that shows no end long after the task's time keeps nobody waiting.
    fn past_due(&self) -> Result<(), ClientError> {
        let now = self.client.clock.now();
        let grace = now
            .as_millis()
            .saturating_sub(u64::try_from(GRACE.as_millis()).unwrap_or(u64::MAX));
        if self.saved.is_past_due(super::Timestamp::from_millis(grace)) {
            return Err(ClientError::Expired(Box::new(self.saved.clone())));
        }
        Ok(())
    }

    fn listen(&mut self) {
        let may = self.client.can_listen() && !self.client.never_tells.load(Ordering::Relaxed);
        if may && self.listener.is_none() && self.subscriptions < MAX_SUBSCRIPTIONS {
            self.subscriptions += 1;
            self.listener = Some(Listener::open(self.client, &self.saved.id()));
        }
    }

    /// Sees to the questions that are shown: asks the next one, or sends what was answered.
    async fn ask(&mut self) -> Result<(), ClientError> {
        if let Some((request, _)) = &self.asking {
            if self.shown.contains(request) && !self.saved.has_answered(request) {
                return Ok(());
            }
            tracing::debug!(key = request.key(), "a question is not open any more");
            self.asking = None;
        }
        if let Some(request) = self.shown.iter().find(|request| !self.saved.has_answered(request)) {
            let Some(asking) = self.client.answering.answer(request) else {
                return Err(self.input_needed(self.client.answering.why_not()));
            };
            if self.saved.size() > MAX_ASKED {
                return Err(self.input_needed("the task has asked more already than is kept of one task"));
            }
            self.asking = Some((request.clone(), asking));
            return Ok(());
        }
        if self.shown.is_empty() {
            (self.stale_looks, self.resendings) = (0, 0);
            return Ok(());
        }
        if !self.saved.to_send(&self.shown, false).is_empty() {
            self.stale_looks = 0;
            return self.send(false).await;
        }
        tracing::debug!("the server still shows what was answered");
        if self.stale_looks < LOOKS_BEFORE_RESENDING << self.resendings {
            return Ok(());
        }
        if self.resendings == MAX_RESENDINGS {
            return Err(self.input_needed("the server acknowledges the answer, and asks all the same"));
        }
        tracing::debug!("the server acknowledged an answer and still shows the question: the answer is sent again");
        (self.stale_looks, self.resendings) = (0, self.resendings + 1);
        self.send(true).await
    }

    fn input_needed(&self, reason: &str) -> ClientError {
        ClientError::InputNeeded(Box::new(InputNeeded {
            task: Some(self.saved.clone()),
            requests: self.shown.clone(),
            reason: reason.to_owned(),
        }))
    }

    async fn answered(&mut self, answer: Result<Value, InputError>) -> Result<(), ClientError> {
        let Some((request, _)) = self.asking.take() else {
            return Ok(());
        };
        let response = answer.map_err(|error| self.input_needed(&error.to_string()))?;
        self.saved.keep(&request, response);
        // Before it is sent: who dies now has not asked in vain.
        self.observer.tell(TaskEvent::Saved(self.saved));
        self.ask().await
    }

    /// Sends what was answered, all at once: a server need not take a part.
    async fn send(&mut self, again: bool) -> Result<(), ClientError> {
        let answers = self.saved.to_send(&self.shown, again);
        if answers.is_empty() {
            // The question was gone, and its answer forgotten; a server that reads old copies shows it for a while.
            return Ok(());
        }
        let keys: Vec<String> = answers.keys().cloned().collect();
        let answers: serde_json::Map<String, Value> = answers.into_iter().collect();
        match self.client.update(&self.saved.id(), answers).await {
            Ok(()) => {
                self.saved.acknowledged(keys.iter());
                self.observer.tell(TaskEvent::Saved(self.saved));
                self.sending_trouble = None;
                // What an answer sets going is often done at once.
                self.next_look = after(Instant::now(), self.client.pacing.first_look);
                Ok(())
            }
            // Answers can be sent twice, so the next look, which shows the question still, sends them again.
            Err(error @ ClientError::Transport { .. }) => self.retry(error, true),
            // The task may have ended meanwhile, and then that is what there is to say.
            Err(error) => match self.client.get(&self.saved.id()).await {
                Ok(task) if !task.state.is_terminal() => Err(error.of_task(self.saved)),
                Ok(_) => {
                    self.next_look = Instant::now();
                    Ok(())
                }
                Err(lost) => self.retry(lost, true),
            },
        }
    }
}
