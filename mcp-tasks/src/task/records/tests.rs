//! Creations and writes over a store that fails now and then.

use mcp_tasks_core::store::contract::scripted::{Script, ScriptedStore};
use mcp_tasks_core::{ClientCapabilities, Json, MemoryStore};

use super::*;
use crate::run::clock::TokioClock;

const LEASE: Duration = Duration::from_secs(30);

struct Scene {
    store: Arc<ScriptedStore<MemoryStore>>,
    watchers: Arc<Watchers>,
    executions: Arc<Executions>,
    records: TaskRecords,
}

impl Scene {
    fn new(script: impl FnOnce(&mut Script)) -> Self {
        let store = Arc::new(ScriptedStore::new(MemoryStore::new(), |time| {
            Box::pin(tokio::time::sleep(time))
        }));
        store.script(script);
        let (executions, watchers) = (Arc::<Executions>::default(), Arc::<Watchers>::default());
        let (clock, shared) = (Arc::new(TokioClock::new()), store.clone());
        let records = TaskRecords::new(shared, clock, LEASE, 7, executions.clone(), watchers.clone());
        Self {
            store,
            watchers,
            executions,
            records,
        }
    }

    fn record(&self) -> TaskRecord {
        let nothing = Json::of(&()).unwrap();
        let capabilities = ClientCapabilities::new(nothing.clone());
        let id = TaskId::new("task");
        let mut record = TaskRecord::new(
            id,
            "tool".into(),
            nothing,
            capabilities,
            self.records.now(),
            None,
            LEASE,
        );
        record.execution.lease_until = Some(self.records.claim().lease_until);
        record.last_write = Some(self.records.write_id());
        record
    }
}

#[tokio::test(start_paused = true)]
async fn a_creation_is_uncertain_where_the_store_may_have_stored_it() {
    let scene = Scene::new(|script| script.create.lose = 1);
    let created = scene.records.create(&scene.record()).await;
    assert!(created.outcome.is_ok() && created.is_certain, "found by its write id");
    let again = scene.records.create(&scene.record()).await;
    assert!(matches!(again.outcome, Err(StoreError::AlreadyExists { .. })) && again.is_certain);

    let scene = Scene::new(|script| script.down = true);
    let before = Instant::now();
    let lost = scene.records.create(&scene.record()).await;
    assert!(lost.outcome.is_err() && !lost.is_certain);
    assert!(before.elapsed() <= REQUEST_PATIENCE, "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_write_is_told_on_this_node_and_applied_once() {
    let scene = Scene::new(|script| script.update.lose = 2);
    let record = scene.record();
    let created = scene.records.create(&record).await.outcome.expect("it is stored");
    let registration = scene.executions.register(&created);
    let mut watch = scene.watchers.watch();
    watch.add(&record.task_id);
    watch.next_changed();
    let (epoch, until) = (created.execution.epoch, scene.records.claim().lease_until);
    let until = until.saturating_add(LEASE);
    let renewed = scene
        .records
        .write_for_execution(&record.task_id, move |r| r.renewed(epoch, until));
    let updated = renewed.await.expect("it is stored").expect("it is there");
    assert_eq!((updated.applied, updated.record.version), (true, 2));
    assert_eq!(watch.next_changed(), Some(record.task_id.clone()));
    assert_eq!(scene.store.tally().updates, 3);
    // The store's own word of this write is no news for the execution.
    scene.executions.record_changed(&record.task_id, Some(2));
    let told = tokio::time::timeout(LEASE, registration.changed.notified()).await;
    assert!(told.is_err());
}
