use std::sync::Arc;

use mcp_tasks_core::store::contract::scripted::{Ability, Script, ScriptedStore};
use mcp_tasks_core::{Change, ChangeHub, ClientCapabilities, Json, MemoryStore, TaskChange, TaskStore, WriteId};

use super::*;
use crate::TaskRuntime;
use crate::config::Config;
use crate::run::clock::{Clock, TokioClock};

const UNREADABLE: &str = "unreadable";

/// A node that listens, and a store that another node writes to.
struct Scene {
    engine: TaskEngine,
    store: Arc<MemoryStore>,
    clock: Arc<TokioClock>,
}

/// Longer than anything here takes.
const QUIET: Duration = Duration::from_secs(3600);

impl Scene {
    /// On a store that tells of changes, or of none.
    fn new(tells: bool) -> Self {
        Self::on(|script| {
            if !tells {
                script.hides = &[Ability::ChangeFeed];
            }
        })
    }

    /// The store tells of what is said in `feed`, and of nothing else.
    fn told(feed: ChangeHub) -> Self {
        Self::on(|script| script.feed = Some(feed))
    }

    fn on(script: impl FnOnce(&mut Script)) -> Self {
        let store = Arc::new(MemoryStore::new());
        let clock = Arc::new(TokioClock::new());
        let scripted = ScriptedStore::new(store.clone(), |time| Box::pin(tokio::time::sleep(time))).with(script);
        scripted.script(|script| script.unreadable = Some(TaskId::new(UNREADABLE)));
        let runtime = TaskRuntime::builder()
            .without_inventory()
            .config(Config::builder().build().unwrap())
            .store(Arc::new(scripted))
            .clock(clock.clone())
            .build()
            .unwrap();
        Self {
            engine: runtime.engine().clone(),
            store,
            clock,
        }
    }

    /// A task that another node runs, and holds the lease of.
    async fn task(&self, id: &str, ttl: Duration) -> TaskId {
        let id = TaskId::new(id);
        let mut record = TaskRecord::new(
            id.clone(),
            "tool".into(),
            Json::of(&()).unwrap(),
            ClientCapabilities::new(Json::of(&()).unwrap()),
            self.clock.now(),
            Some(ttl),
            Duration::from_secs(2),
        );
        record.execution.node = Some("another".into());
        record.execution.lease_until = Some(self.clock.now().saturating_add(QUIET));
        self.store.create(record).await.unwrap();
        id
    }

    /// Another node writes.
    async fn write(&self, id: &TaskId, change: impl Fn(&mut TaskRecord, Timestamp) + Send + Sync + 'static) {
        let now = self.clock.now();
        let mutation = move |record: &TaskRecord| {
            let mut next = record.clone();
            change(&mut next, now);
            Change::Write(Box::new(next))
        };
        let write = WriteId::new(rand());
        self.store
            .update(id, now, write, Arc::new(mutation))
            .await
            .unwrap()
            .unwrap();
    }

    async fn listen(&self, ids: &[&TaskId]) -> TaskListener {
        let ids = ids.iter().map(|id| id.as_str());
        self.engine.listen(ids, Caller::anonymous()).await.unwrap()
    }
}

fn rand() -> u128 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed).into()
}

fn say(words: String) -> impl Fn(&mut TaskRecord, Timestamp) + Send + Sync {
    move |record, now| {
        record.status_message = Some(words.as_str().into());
        record.last_updated_at = now;
    }
}

fn complete(record: &mut TaskRecord, now: Timestamp) {
    record.status = TaskStatus::Completed;
    record.result = Some(Json::of(&serde_json::json!({"content": []})).unwrap());
    record.last_updated_at = now;
}

async fn heard(listener: &mut TaskListener) -> Arc<TaskRecord> {
    match listener.next(QUIET).await {
        ListenerEvent::Changed(record) => record,
        other => panic!("{other:?}"),
    }
}

/// Lets the task that hears of changes come by.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// A record that cannot be read, as one of another release, is not granted; the other tasks are.
#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_read_hides_no_other() {
    let scene = Scene::new(false);
    let id = scene.task("a", QUIET).await;
    let mut listener = scene.listen(&[&TaskId::new(UNREADABLE), &id]).await;
    assert_eq!(listener.granted(), std::slice::from_ref(&id));
    heard(&mut listener).await;
    scene.write(&id, complete).await;
    assert_eq!(heard(&mut listener).await.status, TaskStatus::Completed);
    assert!(matches!(listener.next(QUIET).await, ListenerEvent::Ended));
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_gets_the_newest_state_and_the_last() {
    let scene = Scene::new(true);
    let id = scene.task("a", QUIET).await;
    let mut listener = scene.listen(&[&id]).await;
    assert_eq!(heard(&mut listener).await.version, 1);
    for n in 0..500 {
        scene.write(&id, say(format!("step {n}"))).await;
        settle().await;
    }
    assert_eq!(heard(&mut listener).await.status_message.as_deref(), Some("step 499"));
    for n in 0..20_000 {
        // So many that the feed itself drops some.
        scene.write(&id, say(format!("more {n}"))).await;
    }
    scene.write(&id, complete).await;
    settle().await;
    assert_eq!(heard(&mut listener).await.status, TaskStatus::Completed);
    assert!(matches!(listener.next(QUIET).await, ListenerEvent::Ended));
}

#[tokio::test(start_paused = true)]
async fn a_change_on_another_node_is_heard_at_once_where_the_store_tells_of_it() {
    let scene = Scene::new(true);
    let id = scene.task("a", QUIET).await;
    let mut listener = scene.listen(&[&id]).await;
    heard(&mut listener).await;
    let before = scene.clock.now();
    let (record, ()) = tokio::join!(heard(&mut listener), async {
        settle().await;
        scene.write(&id, complete).await;
    });
    assert_eq!(record.status, TaskStatus::Completed);
    assert_eq!(scene.clock.now(), before);
}

/// A feed that was interrupted, or that could not keep up, says no more than that: what it did not tell of is found then,
/// for every task that is watched, and not when a timer comes round.
#[tokio::test(start_paused = true)]
async fn what_a_feed_has_dropped_is_found_when_it_resumes() {
    let feed = ChangeHub::new();
    let scene = Scene::told(feed.clone());
    let ids = [scene.task("a", QUIET).await, scene.task("b", QUIET).await];
    let mut listener = scene.listen(&[&ids[0], &ids[1]]).await;
    // The feed says that it begins.
    settle().await;
    for _ in &ids {
        heard(&mut listener).await;
    }
    let before = scene.clock.now();
    for id in &ids {
        scene.write(id, complete).await;
    }
    settle().await;
    assert!(
        matches!(listener.next(Duration::ZERO).await, ListenerEvent::Idle),
        "no change was told"
    );
    feed.send(TaskChange::Resumed);
    for _ in &ids {
        assert_eq!(heard(&mut listener).await.status, TaskStatus::Completed);
    }
    assert!(matches!(listener.next(QUIET).await, ListenerEvent::Ended));
    assert_eq!(scene.clock.now(), before, "no timer was waited for");
}

#[tokio::test(start_paused = true)]
async fn where_the_store_tells_of_nothing_tasks_are_looked_at_as_often_as_their_tools_say() {
    let scene = Scene::new(false);
    let id = scene.task("a", QUIET).await;
    let mut listener = scene.listen(&[&id]).await;
    heard(&mut listener).await;
    let before = scene.clock.now();
    scene.write(&id, complete).await;
    assert_eq!(heard(&mut listener).await.status, TaskStatus::Completed);
    let waited = scene.clock.now().saturating_since(before);
    assert!(
        waited >= Duration::from_secs(2) && waited < Duration::from_secs(3),
        "{waited:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_client_cannot_see_is_not_told() {
    let scene = Scene::new(true);
    let id = scene.task("a", QUIET).await;
    let mut listener = scene.listen(&[&id]).await;
    heard(&mut listener).await;
    let until = scene.clock.now().saturating_add(QUIET * 2);
    scene
        .write(&id, move |record, _| record.execution.lease_until = Some(until))
        .await;
    settle().await;
    assert!(matches!(
        listener.next(Duration::from_secs(60)).await,
        ListenerEvent::Idle
    ));
}

#[tokio::test(start_paused = true)]
async fn a_task_is_gone_when_its_time_is_up_and_the_rest_is_heard_on() {
    for tells in [true, false] {
        let scene = Scene::new(tells);
        let short = scene.task("short", Duration::from_secs(10)).await;
        let long = scene.task("long", QUIET).await;
        let before = scene.clock.now();
        let mut listener = scene.listen(&[&short, &long, &short]).await;
        assert_eq!(listener.granted(), [short.clone(), long.clone()]);
        assert_eq!(heard(&mut listener).await.task_id, short);
        assert_eq!(heard(&mut listener).await.task_id, long);
        assert!(matches!(
            listener.next(Duration::from_secs(60)).await,
            ListenerEvent::Idle
        ));
        assert_eq!(listener.tasks.len(), 1);
        assert!(scene.clock.now().saturating_since(before) >= Duration::from_secs(60));
        scene.store.delete(&long).await.unwrap();
        assert!(matches!(listener.next(QUIET).await, ListenerEvent::Ended));
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_lease_is_over_is_ended_while_it_is_watched() {
    for tells in [true, false] {
        let scene = Scene::new(tells);
        let id = scene.task("a", QUIET).await;
        let until = scene.clock.now().saturating_add(Duration::from_secs(30));
        scene
            .write(&id, move |record, _| record.execution.lease_until = Some(until))
            .await;
        let mut listener = scene.listen(&[&id]).await;
        assert_eq!(heard(&mut listener).await.status, TaskStatus::Working);
        assert_eq!(heard(&mut listener).await.status, TaskStatus::Failed);
        assert!(matches!(listener.next(QUIET).await, ListenerEvent::Ended));
    }
}

#[tokio::test(start_paused = true)]
async fn a_listener_watches_a_bounded_number_of_tasks() {
    let scene = Scene::new(true);
    let mut ids = Vec::new();
    for n in 0..MOST_WATCHED + 10 {
        ids.push(scene.task(&format!("{n}"), QUIET).await);
    }
    let listener = scene.listen(&ids.iter().collect::<Vec<_>>()).await;
    assert_eq!(listener.granted(), &ids[..MOST_WATCHED]);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_dropped_listens_no_more() {
    let scene = Scene::new(true);
    let id = scene.task("a", QUIET).await;
    let listener = scene.listen(&[&id]).await;
    let records = Arc::downgrade(&scene.engine.records);
    drop((listener, scene.engine));
    settle().await;
    assert!(records.upgrade().is_none(), "no job holds a part of it");
}
