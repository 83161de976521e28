//! Writes whose outcome is not known in time: what they started, or should not have started.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_tasks::prelude::*;
use mcp_tasks_core::{
    ExpiredLeases, Mutation, StoreFuture, TaskId, TaskRecord, TaskStore, Timestamp, Updated, WriteId,
};
use serde_json::json;
use tokio::time::sleep;

use crate::harness::{Log, Mode, Node, TestStore, Word, keys, status, text, word};

const LEASE: Duration = Duration::from_secs(30);

/// Works for a minute, and may be run again.
#[mcp_task(on_crash = "replay")]
async fn order(log: State<Log>) -> String {
    log.push("ordered");
    sleep(Duration::from_secs(60)).await;
    "done".to_owned()
}

/// Asks, and works for a minute.
#[mcp_task]
async fn asks(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
    let answer = word(ctx.elicit::<Word>("Which?").await?);
    log.push(answer.clone());
    sleep(Duration::from_secs(60)).await;
    Ok(answer)
}

/// Asks inside the call, and goes on as a task.
#[mcp_task(defer)]
async fn defers(ctx: ToolContext, log: State<Log>) -> Result<String, ToolError> {
    let answer = word(ctx.elicit::<Word>("Which?").await?);
    ctx.defer().await?;
    log.push(answer.clone());
    sleep(Duration::from_secs(60)).await;
    Ok(answer)
}

/// A store that tells of expired leases, and whose creations land late and unheard.
#[derive(Debug)]
struct Late {
    store: Arc<TestStore>,
    created: Arc<Mutex<Vec<TaskId>>>,
    lands_after: Mutex<Option<Duration>>,
}

impl Late {
    fn new(store: &Arc<TestStore>, created: &Arc<Mutex<Vec<TaskId>>>) -> Arc<Self> {
        Arc::new(Self {
            store: store.clone(),
            created: created.clone(),
            lands_after: Mutex::default(),
        })
    }

    fn land_after(&self, time: Option<Duration>) {
        *self.lands_after.lock().expect("no test panics inside") = time;
    }
}

impl TaskStore for Late {
    fn create(&self, record: TaskRecord) -> StoreFuture<'_, Arc<TaskRecord>> {
        let created = || self.created.lock().expect("no test panics inside");
        created().push(record.task_id.clone());
        let late = *self.lands_after.lock().expect("no test panics inside");
        let Some(late) = late else {
            return self.store.create(record);
        };
        let store = self.store.clone();
        Box::pin(async move {
            tokio::spawn(async move {
                sleep(late).await;
                store.create(record).await.expect("nobody else has the id");
            });
            std::future::pending().await
        })
    }

    fn get<'a>(&'a self, id: &'a TaskId, now: Timestamp) -> StoreFuture<'a, Option<Arc<TaskRecord>>> {
        self.store.get(id, now)
    }

    fn update<'a>(
        &'a self,
        id: &'a TaskId,
        now: Timestamp,
        write: WriteId,
        mutation: Mutation,
    ) -> StoreFuture<'a, Option<Updated>> {
        self.store.update(id, now, write, mutation)
    }

    fn delete<'a>(&'a self, id: &'a TaskId) -> StoreFuture<'a, ()> {
        self.store.delete(id)
    }

    fn as_expired_leases(&self) -> Option<&dyn ExpiredLeases> {
        Some(self)
    }
}

impl ExpiredLeases for Late {
    fn expired_leases(&self, now: Timestamp, limit: usize) -> StoreFuture<'_, Vec<Arc<TaskRecord>>> {
        let ids = self.created.lock().expect("no test panics inside").clone();
        Box::pin(async move {
            let mut found = Vec::new();
            for id in ids.iter().take(limit) {
                let record = self.store.get(id, now).await?;
                found.extend(record.filter(|record| record.is_abandoned(now)));
            }
            Ok(found)
        })
    }
}

/// A call whose task was stored although its client was told that it failed leaves nothing that any node would run, also
/// where the record appears late.
#[tokio::test(start_paused = true)]
async fn a_call_that_was_told_to_have_failed_is_never_run() {
    for late in [0, 1_990, 10_000, 25_000].map(Duration::from_millis) {
        let store = Arc::new(TestStore::new(Mode::Straight));
        let (created, log) = (Arc::default(), Log::default());
        let way = Late::new(&store, &created);
        let tools = |b: mcp_tasks::host::TaskRuntimeBuilder| b.register::<order>().state(log.clone());
        let first = Node::on(store.clone(), |b| tools(b).store(way.clone())).client().await;
        let second = Node::on(store.clone(), |b| tools(b).store(Late::new(&store, &created)));
        let second = second.client().await;
        // Any request starts what a node does beside requests.
        second.get("nothing").await.expect_err("there is no such task");

        way.land_after(Some(late));
        let error = first.call("order", json!({})).await.expect_err("it is not known");
        assert_eq!(error.code.0, -32603, "{error}");
        assert!(error.message.contains("try again"), "{error}");
        sleep(3 * LEASE).await;
        assert!(log.lines().is_empty(), "it was not run, {late:?}");
        let orphan = created.lock().expect("no test panics inside")[0].clone();
        let left = store.get(&orphan, mcp_tasks::host::Clock::now(&*store.clock())).await;
        assert!(
            left.expect("memory does not fail").is_none(),
            "nothing is left, {late:?}"
        );

        // The call made again is another task, which stays.
        way.land_after(None);
        let id = first.start("order", json!({})).await;
        sleep(3 * LEASE).await;
        assert_eq!(text(&first.settled(&id).await), "done");
        assert_eq!(log.lines(), ["ordered"]);
    }
}

/// A store that is out of reach until after the lease is asked again until the record is gone.
#[tokio::test(start_paused = true)]
async fn an_orphan_is_removed_once_the_store_is_back() {
    let log = Log::default();
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<order>().state(log.clone())).await;
    node.store.misbehave(|faults| faults.lose_creates = u32::MAX);
    client.call("order", json!({})).await.expect_err("it is not known");
    node.store.misbehave(|faults| {
        faults.lose_creates = 0;
        faults.down = true;
    });
    sleep(LEASE).await;
    node.store.misbehave(|faults| faults.down = false);
    sleep(LEASE).await;
    assert!(node.store.is_empty(), "nothing is left");
    assert!(log.lines().is_empty());
}

/// An answer that was taken in although its client was told that it failed resumes the task, and the client need not come
/// again.
#[tokio::test(start_paused = true)]
async fn an_answer_that_was_acknowledged_late_resumes_its_task() {
    let log = Log::default();
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<asks>().state(log.clone())).await;
    let id = client.start("asks", json!({})).await;
    assert_eq!(keys(&client.settled(&id).await), ["elicit-0"]);
    node.store.misbehave(|faults| faults.lose = u32::MAX);
    let answer = json!({"elicit-0": {"action": "accept", "content": {"word": "this"}}});
    let error = client.update(&id, answer.clone()).await.expect_err("it is not known");
    assert_eq!(error.code.0, -32603, "{error}");
    node.store.misbehave(|faults| faults.lose = 0);
    client.update(&id, answer).await.expect("an acknowledgement");
    sleep(3 * LEASE).await;
    assert_eq!(text(&client.settled(&id).await), "this");
    assert_eq!(log.lines(), ["this"], "once");
}

/// One that was not taken in changes nothing, and can be given again.
#[tokio::test(start_paused = true)]
async fn an_answer_that_did_not_arrive_can_be_given_again() {
    let log = Log::default();
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<asks>().state(log.clone())).await;
    let id = client.start("asks", json!({})).await;
    client.settled(&id).await;
    node.store.misbehave(|faults| faults.fail = u32::MAX);
    let answer = json!({"elicit-0": {"action": "accept", "content": {"word": "this"}}});
    client.update(&id, answer).await.expect_err("it did not arrive");
    node.store.misbehave(|faults| faults.fail = 0);
    sleep(3 * LEASE).await;
    assert_eq!(status(&client.task(&id).await), "input_required");
    client.say(&id, "elicit-0", "that").await;
    sleep(3 * LEASE).await;
    assert_eq!(text(&client.settled(&id).await), "that");
    assert_eq!(log.lines(), ["that"]);
}

/// The last round of a call names its task: sent again it finds the one that was stored unheard, which runs, once.
#[tokio::test(start_paused = true)]
async fn a_round_sent_again_finds_the_task_that_was_stored_unheard() {
    let log = Log::default();
    let (node, client) = Node::start(Mode::Straight, |b| b.register::<defers>().state(log.clone())).await;
    let round = client.call("defers", json!({})).await.expect("a question");
    let answer = json!({"elicit-0": {"action": "accept", "content": {"word": "this"}}});
    let again = || client.call_again("defers", json!({}), &round, answer.clone());
    node.store.misbehave(|faults| faults.lose_creates = u32::MAX);
    again().await.expect_err("it is not known");
    node.store.misbehave(|faults| faults.lose_creates = 0);
    let task = again().await.expect("a task");
    let id = task["taskId"].as_str().expect("a task has an id").to_owned();
    sleep(3 * LEASE).await;
    assert_eq!(text(&client.settled(&id).await), "this");
    assert_eq!(log.lines(), ["this"], "once");
    let once_more = again().await.expect("the same task");
    assert_eq!(once_more["taskId"], task["taskId"]);
}
