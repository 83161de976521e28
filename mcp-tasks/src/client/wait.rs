//! Waits for a task until its result: polls, listens, asks, and tries again.

mod retry;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use self::retry::RetryState;
use super::pacing::deadline_after;
use super::subscription::{Subscription, SubscriptionEvent};
use super::wire::MAX_MESSAGE;
use super::{
    ClientError, Connection, DetailedTask, InputError, InputNeeded, InputRequest, Observer, SavedTask, TaskEvent,
    TaskState, ToolResult,
};

/// How often a task is polled while a subscription is open: a notification can be lost, a task must not be.
const SUBSCRIBED_POLL_INTERVAL: Duration = Duration::from_secs(30);

/// How often a subscription is opened in one wait. A server that ends every one of them is asked instead.
const MAX_SUBSCRIPTIONS: u32 = 5;

/// How often a task shows a question after its answer was acknowledged, before the answer is sent once more. Servers
/// that take an answer in later than they acknowledge it do so within a poll or two.
const POLLS_BEFORE_RESENDING: u32 = 3;

/// How often an answer is sent again; each time after twice as many polls.
const MAX_RESENDINGS: u32 = 4;

/// How much a task may ask in all, in bytes: as much as one message may have, and some ten thousand ordinary questions. What
/// was asked is kept, so that nothing is asked twice, and a server may ask for ever.
const MAX_RECORDED_REQUESTS: usize = MAX_MESSAGE;

/// How far behind the end of its time a task that shows no change is given up: clocks differ, and sweeps are late.
const EXPIRY_GRACE: Duration = Duration::from_secs(300);

type PollFuture = BoxFuture<'static, Result<Box<DetailedTask>, ClientError>>;
type AnswerFuture = BoxFuture<'static, Result<Value, InputError>>;

/// What a wait takes up next.
enum Next {
    Polled(Result<Box<DetailedTask>, ClientError>),
    Subscription(SubscriptionEvent),
    Answered(Result<Value, InputError>),
    PollDue,
}

/// One wait.
pub(super) struct Wait<'a> {
    client: &'a Arc<Connection>,
    observer: &'a Observer,
    saved: &'a mut SavedTask,
    polling: Option<PollFuture>,
    next_poll: Instant,
    subscription: Option<Subscription>,
    is_subscribed: bool,
    subscriptions: u32,
    asking: Option<(InputRequest, AnswerFuture)>,
    open_requests: Vec<InputRequest>,
    has_polled: bool,
    /// Polls since answers were sent, and how often they were sent again.
    stale_polls: u32,
    resendings: u32,
    poll_retries: Option<RetryState>,
    send_retries: Option<RetryState>,
    last: Option<DetailedTask>,
}

impl<'a> Wait<'a> {
    pub(super) fn new(
        client: &'a Arc<Connection>,
        observer: &'a Observer,
        saved: &'a mut SavedTask,
        first_poll: Duration,
    ) -> Self {
        Self {
            client,
            observer,
            saved,
            polling: None,
            next_poll: deadline_after(Instant::now(), first_poll),
            subscription: None,
            is_subscribed: false,
            subscriptions: 0,
            asking: None,
            open_requests: Vec::new(),
            has_polled: false,
            stale_polls: 0,
            resendings: 0,
            poll_retries: None,
            send_retries: None,
            last: None,
        }
    }

    /// Until the task has ended, or cannot be waited for.
    pub(super) async fn run(mut self) -> Result<ToolResult, ClientError> {
        loop {
            let outcome = match self.next().await {
                Next::PollDue => {
                    let (client, id) = (self.client.clone(), self.saved.id());
                    self.polling = Some(Box::pin(async move { client.get(&id).await.map(Box::new) }));
                    None
                }
                Next::Polled(Ok(task)) => {
                    self.poll_retries = None;
                    self.has_polled = true;
                    self.observe(*task).await?
                }
                Next::Polled(Err(error)) => {
                    self.retry(error, false)?;
                    None
                }
                Next::Subscription(SubscriptionEvent::Task(task)) => self.observe(*task).await?,
                Next::Subscription(SubscriptionEvent::Acknowledged) => {
                    self.is_subscribed = true;
                    // For changes before the subscription was there.
                    self.next_poll = Instant::now();
                    None
                }
                Next::Subscription(SubscriptionEvent::Refused) => {
                    self.subscription = None;
                    self.subscriptions = MAX_SUBSCRIPTIONS;
                    None
                }
                Next::Subscription(SubscriptionEvent::Ended) => {
                    self.subscription = None;
                    self.is_subscribed = false;
                    // For changes since its last notification.
                    self.next_poll = self
                        .next_poll
                        .min(deadline_after(Instant::now(), self.client.pacing.floor));
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
            polling,
            next_poll,
            subscription,
            asking,
            ..
        } = self;
        let next = tokio::select! {
            answer = async { (&mut asking.as_mut().expect("a question is asked").1).await }, if asking.is_some() => Next::Answered(answer),
            task = async { polling.as_mut().expect("a poll is under way").await }, if polling.is_some() => Next::Polled(task),
            event = async { subscription.as_mut().expect("a subscription is open").next().await }, if subscription.is_some() => Next::Subscription(event),
            () = sleep_until(*next_poll), if polling.is_none() => Next::PollDue,
        };
        if matches!(next, Next::Polled(_)) {
            self.polling = None;
        }
        next
    }

    /// When the next poll is, after one that went well.
    fn schedule(&mut self) {
        let interval = self.client.pacing.interval(self.saved.poll_interval());
        // While an answer is on its way the task is polled all the same: a server that loses it sends no notification.
        let at_rest = self.open_requests.is_empty() || self.asking.is_some();
        let interval = if self.is_subscribed && at_rest {
            interval.max(SUBSCRIBED_POLL_INTERVAL)
        } else {
            interval
        };
        self.next_poll = deadline_after(Instant::now(), interval);
    }

    /// After a request that failed: when to try again, or that it is over.
    fn retry(&mut self, error: ClientError, sending: bool) -> Result<(), ClientError> {
        let source = match &error {
            ClientError::Transport { source, .. } if source.is_temporary => source,
            ClientError::UnknownTask(_) if self.saved.is_past_due(self.client.clock.now()) => {
                return Err(ClientError::Expired(Box::new(self.saved.clone())));
            }
            _ => return Err(error.with_task(self.saved)),
        };
        let now = Instant::now();
        let pacing = &self.client.pacing;
        // A poll that succeeds says nothing about the answers.
        let retries = if sending {
            &mut self.send_retries
        } else {
            &mut self.poll_retries
        };
        let retries = retries.get_or_insert_with(|| RetryState::new(pacing, now));
        let retry_after = source.retry_after.unwrap_or_default();
        let Some(pause) = retries.next_delay(pacing, now, retry_after) else {
            return Err(error.with_task(self.saved));
        };
        tracing::debug!(%error, ?pause, "a request about a task failed, it is tried again");
        self.observer.tell(TaskEvent::Retrying {
            error: &error,
            after: pause,
        });
        self.next_poll = deadline_after(now, pause);
        Ok(())
    }

    /// Takes in what the server said of the task.
    async fn observe(&mut self, task: DetailedTask) -> Result<Option<ToolResult>, ClientError> {
        let mut changed = self.saved.update_times(&task);
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
                return Err(failed.with_handler_hint(&self.client.input_support));
            }
            TaskState::Cancelled => {
                return Err(ClientError::Cancelled {
                    id: task.id,
                    status_message: task.status_message,
                });
            }
            TaskState::Working => self.open_requests.clear(),
            TaskState::InputRequired { requests } => self.open_requests.clone_from(requests),
        }
        self.last = Some(task);
        changed |= self.saved.forget_settled(&self.open_requests);
        if changed {
            self.observer.tell(TaskEvent::Checkpoint(self.saved));
        }
        // A notification is no poll, and the next poll stays when it was due.
        if std::mem::take(&mut self.has_polled) {
            self.schedule();
            self.stale_polls += 1;
        }
        self.check_expiry()?;
        self.subscribe();
        self.handle_questions().await?;
        Ok(None)
    }

    /// Ends the wait for a task that shows no end long after its time.
    fn check_expiry(&self) -> Result<(), ClientError> {
        let now = self.client.clock.now();
        let grace = now
            .as_millis()
            .saturating_sub(u64::try_from(EXPIRY_GRACE.as_millis()).unwrap_or(u64::MAX));
        if self.saved.is_past_due(super::Timestamp::from_millis(grace)) {
            return Err(ClientError::Expired(Box::new(self.saved.clone())));
        }
        Ok(())
    }

    fn subscribe(&mut self) {
        let may = self.client.can_listen() && !self.client.subscriptions_unsupported.load(Ordering::Relaxed);
        if may && self.subscription.is_none() && self.subscriptions < MAX_SUBSCRIPTIONS {
            self.subscriptions += 1;
            self.subscription = Some(Subscription::open(self.client, &self.saved.id()));
        }
    }

    /// Sees to the questions that are shown: asks the next one, or sends what was answered.
    async fn handle_questions(&mut self) -> Result<(), ClientError> {
        if let Some((request, _)) = &self.asking {
            if self.open_requests.contains(request) && !self.saved.has_answered(request) {
                return Ok(());
            }
            tracing::debug!(key = request.key(), "a question is not open any more");
            self.asking = None;
        }
        if let Some(request) = self
            .open_requests
            .iter()
            .find(|request| !self.saved.has_answered(request))
        {
            let Some(asking) = self.client.input_support.answer(request) else {
                return Err(self.input_needed(self.client.input_support.unsupported_reason()));
            };
            if self.saved.recorded_bytes() > MAX_RECORDED_REQUESTS {
                return Err(self.input_needed("the task has asked more already than is kept of one task"));
            }
            self.asking = Some((request.clone(), asking));
            return Ok(());
        }
        if self.open_requests.is_empty() {
            (self.stale_polls, self.resendings) = (0, 0);
            return Ok(());
        }
        if !self.saved.unsent_answers(&self.open_requests, false).is_empty() {
            self.stale_polls = 0;
            return self.send(false).await;
        }
        tracing::debug!("the server still shows what was answered");
        if self.stale_polls < POLLS_BEFORE_RESENDING << self.resendings {
            return Ok(());
        }
        if self.resendings == MAX_RESENDINGS {
            return Err(self.input_needed("the server acknowledges the answer, and asks all the same"));
        }
        tracing::debug!("the server acknowledged an answer and still shows the question: the answer is sent again");
        (self.stale_polls, self.resendings) = (0, self.resendings + 1);
        self.send(true).await
    }

    fn input_needed(&self, reason: &str) -> ClientError {
        ClientError::InputNeeded(Box::new(InputNeeded {
            task: Some(self.saved.clone()),
            requests: self.open_requests.clone(),
            reason: reason.to_owned(),
        }))
    }

    async fn answered(&mut self, answer: Result<Value, InputError>) -> Result<(), ClientError> {
        let Some((request, _)) = self.asking.take() else {
            return Ok(());
        };
        let response = answer.map_err(|error| self.input_needed(&error.to_string()))?;
        self.saved.record_answer(&request, response);
        // Before it is sent: a process that dies now has the answer saved.
        self.observer.tell(TaskEvent::Checkpoint(self.saved));
        self.handle_questions().await
    }

    /// Sends what was answered, all at once: a server need not take a part.
    async fn send(&mut self, again: bool) -> Result<(), ClientError> {
        let answers = self.saved.unsent_answers(&self.open_requests, again);
        if answers.is_empty() {
            // The question was gone, and its answer forgotten; a server that reads old copies shows it for a while.
            return Ok(());
        }
        let keys: Vec<String> = answers.keys().cloned().collect();
        let answers: serde_json::Map<String, Value> = answers.into_iter().collect();
        match self.client.update(&self.saved.id(), answers).await {
            Ok(()) => {
                self.saved.mark_acknowledged(keys.iter());
                self.observer.tell(TaskEvent::Checkpoint(self.saved));
                self.send_retries = None;
                // What an answer sets going is often done at once.
                self.next_poll = deadline_after(Instant::now(), self.client.pacing.first_poll);
                Ok(())
            }
            // Answers can be sent twice, so the next poll, which shows the question still, sends them again.
            Err(error @ ClientError::Transport { .. }) => self.retry(error, true),
            // The task may have ended meanwhile, and then that is what there is to say.
            Err(error) => match self.client.get(&self.saved.id()).await {
                Ok(task) if !task.state.is_terminal() => Err(error.with_task(self.saved)),
                Ok(_) => {
                    self.next_poll = Instant::now();
                    Ok(())
                }
                Err(lost) => self.retry(lost, true),
            },
        }
    }
}
