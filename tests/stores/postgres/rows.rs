//! Rows that cannot be read, that others write too, and that are over.

use std::sync::Arc;

use mcp_tasks_core::{Mutation, Report, TaskId, TaskStatus, TaskStore, WriteId};

use super::{fresh, options, raw, unique};
use crate::records::{at, create_two_hundred_leases, every_use_is_refused, increment, json, record};

#[tokio::test]
async fn a_row_that_cannot_be_read_is_left_alone_and_keeps_nothing_from_being_swept() {
    let Some((_, url)) = fresh() else { return };
    let prefix = unique("damage:");
    let store = options(url).key_prefix(prefix.as_str()).open().unwrap();
    let raw = raw(url).await;
    for n in 0..300 {
        store.create(record(&format!("t{n:03}"), Some(n))).await.unwrap();
    }
    let read = "SELECT record FROM mcp_tasks WHERE prefix = $1 AND id = $2";
    let text: String = raw.query_one(read, &[&prefix, &"t005"]).await.unwrap().get(0);
    let newer = text.replace(r#""format":1"#, r#""format":99,"surprise":{}"#);
    let planted = [("t000", "{"), ("t005", newer.as_str()), ("t100", ""), ("t150", "null")];
    for (id, text) in planted {
        let plant = "UPDATE mcp_tasks SET record = $3, revision = 1 WHERE prefix = $1 AND id = $2";
        assert_eq!(raw.execute(plant, &[&prefix, &id, &text]).await.unwrap(), 1);
    }
    let sweep = store.as_sweep().unwrap();
    assert_eq!(sweep.sweep(at(200)).await.unwrap(), 200 - 4);
    assert_eq!(sweep.sweep(at(200)).await.unwrap(), 0);
    assert_eq!(sweep.sweep(at(1_000)).await.unwrap(), 100);
    for (id, text) in planted {
        every_use_is_refused(&store, id, at(1)).await;
        let left: String = raw.query_one(read, &[&prefix, &id]).await.unwrap().get(0);
        assert_eq!(left, text, "it is left as it was");
        store.delete(&TaskId::new(id)).await.unwrap();
        store.create(record(id, None)).await.unwrap();
    }
}

#[tokio::test]
async fn a_sweep_leaves_other_prefixes_alone() {
    let Some((store, url)) = fresh() else { return };
    let other = options(url).key_prefix(unique("other:")).open().unwrap();
    for store in [&store, &other] {
        store.create(record("t", Some(1))).await.unwrap();
    }
    assert_eq!(store.as_sweep().unwrap().sweep(at(2)).await.unwrap(), 1);
    assert!(other.get(&TaskId::new("t"), at(1)).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_sweep_at_once_remove_everything_once_and_creating_goes_on() {
    let Some((_, url)) = fresh() else { return };
    let prefix = unique("sweeps:");
    let nodes = [0, 1].map(|_| Arc::new(options(url).key_prefix(prefix.as_str()).open().unwrap()));
    for n in 0..1_000 {
        nodes[0].create(record(&format!("old{n}"), Some(0))).await.unwrap();
    }
    let sweeps = nodes
        .clone()
        .map(|store| tokio::spawn(async move { store.as_sweep().unwrap().sweep(at(1)).await }));
    for n in 0..200 {
        nodes[0].create(record(&format!("new{n}"), None)).await.unwrap();
    }
    let mut removed = 0;
    for sweep in sweeps {
        removed += sweep.await.unwrap().unwrap();
    }
    // What one had at the moment the other leaves alone, and neither removes twice.
    assert_eq!(
        removed + nodes[0].as_sweep().unwrap().sweep(at(1)).await.unwrap(),
        1_000
    );
    let left = "SELECT count(*) FROM mcp_tasks WHERE prefix = $1";
    let left: i64 = raw(url).await.query_one(left, &[&prefix]).await.unwrap().get(0);
    assert_eq!(left, 200);
}

#[tokio::test]
async fn nul_is_kept_wherever_it_is() {
    let Some((store, _)) = fresh() else { return };
    let nul = r#"{"a\u0000b":"\u0000c\u0000"}"#;
    let mut task = record("nul\0id", None);
    task.arguments = json(nul);
    task.status_message = Some("a\0b".into());
    store.create(task).await.unwrap();
    let id = TaskId::new("nul\0id");
    let result = r#"{"content":[{"type":"text","text":"\u0000"}]}"#;
    let end: Mutation = Arc::new(move |task| task.completed(1, at(1), &json(result), None));
    store.update(&id, at(1), WriteId::new(2), end).await.unwrap().unwrap();
    let found = store.get(&id, at(1)).await.unwrap().unwrap();
    assert_eq!(found.arguments.get(), nul);
    assert_eq!(found.result.as_ref().unwrap().get(), result);
    for other in ["nul", "nul\\0id", "nulid"] {
        assert!(store.get(&TaskId::new(other), at(1)).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn a_record_written_by_another_node_is_seen() {
    let Some((_, url)) = fresh() else { return };
    let prefix = unique("behind:");
    let [store, other] = [0, 1].map(|_| options(url).key_prefix(prefix.as_str()).open().unwrap());
    store.create(record("t", None)).await.unwrap();
    let id = TaskId::new("t");
    // Deleted and created anew at the version this store has seen.
    other.delete(&id).await.unwrap();
    let mut anew = record("t", None);
    (anew.tool, anew.last_write) = ("other".into(), Some(WriteId::new(2)));
    other.create(anew).await.unwrap();
    let updated = store.update(&id, at(1), WriteId::new(3), increment()).await.unwrap();
    assert_eq!(&*updated.unwrap().record.tool, "other");
    let updated = other.update(&id, at(1), WriteId::new(4), increment()).await.unwrap();
    assert_eq!(updated.unwrap().record.version, 3);
}

/// Where the database isolates transactions more than the store needs, what collides is repeated and no caller hears of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_stricter_isolation_changes_nothing() {
    const WRITERS: u128 = 8;
    const UPDATES: u128 = 20;
    let Some((_, url)) = fresh() else { return };
    for level in ["repeatable%20read", "serializable"] {
        let strict = format!(
            "{url}?options=-c%20default_transaction_isolation%3D{}",
            level.replace("%20", "%5C%20")
        );
        let store = Arc::new(options(&strict).key_prefix(unique("strict:")).open().unwrap());
        store.create(record("t", None)).await.unwrap();
        let mut writers = tokio::task::JoinSet::new();
        for writer in 1..=WRITERS {
            let store = store.clone();
            writers.spawn(async move {
                for n in 0..UPDATES {
                    let write = WriteId::new(writer * 1_000 + n);
                    let updated = store.update(&TaskId::new("t"), at(1), write, increment()).await;
                    updated.unwrap_or_else(|error| panic!("{level}: {error:?}")).unwrap();
                }
            });
        }
        writers.join_all().await;
        let last = store.get(&TaskId::new("t"), at(1)).await.unwrap().unwrap();
        assert_eq!(u128::from(last.version), 1 + WRITERS * UPDATES, "{level}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_update_ten_tasks_and_no_update_is_lost() {
    const TASKS: u64 = 10;
    const UPDATES: u64 = 250;
    let Some((_, url)) = fresh() else { return };
    let prefix = unique("nodes:");
    let nodes = [0, 1].map(|_| Arc::new(options(url).key_prefix(prefix.as_str()).open().unwrap()));
    for n in 0..TASKS {
        nodes[0].create(record(&format!("t{n}"), None)).await.unwrap();
    }
    let mut updates = tokio::task::JoinSet::new();
    for (node, store) in nodes.iter().enumerate() {
        for n in 0..UPDATES {
            let store = store.clone();
            updates.spawn(async move {
                let id = TaskId::new(&format!("t{}", n % TASKS));
                let write = WriteId::new(u128::from((node as u64 + 1) * 1_000_000 + n));
                // As the runtime does, under the same id while it can be repeated.
                loop {
                    match store.update(&id, at(1), write, increment()).await {
                        Err(error) if error.is_retryable() => {}
                        outcome => return outcome.unwrap().unwrap().applied,
                    }
                }
            });
        }
    }
    while let Some(applied) = updates.join_next().await {
        assert!(applied.unwrap());
    }
    for n in 0..TASKS {
        let found = nodes[1]
            .get(&TaskId::new(&format!("t{n}")), at(1))
            .await
            .unwrap()
            .unwrap();
        let updates = 2 * UPDATES / TASKS;
        assert_eq!((found.version, found.poll_interval_ms), (1 + updates, 2_000 + updates));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_cancel_and_complete_on_two_nodes_the_first_is_final_a_thousand_times() {
    let Some((_, url)) = fresh() else { return };
    let prefix = unique("final:");
    let nodes = [0, 1].map(|_| Arc::new(options(url).key_prefix(prefix.as_str()).open().unwrap()));
    for round in 0..1_000 {
        let id = TaskId::new(&format!("t{round}"));
        nodes[0].create(record(id.as_str(), None)).await.unwrap();
        let complete: Mutation = Arc::new(|task| task.completed(1, at(5), &json(r#"{"content":[]}"#), None));
        let cancel: Mutation = Arc::new(|task| task.cancelled(at(6)));
        let ends = [(2, complete), (3, cancel)].map(|(write, end)| {
            let (store, id) = (nodes[write - 2].clone(), id.clone());
            tokio::spawn(async move { store.update(&id, at(1), WriteId::new(write as u128), end).await })
        });
        let [completed, cancelled] = ends;
        let outcomes = [completed.await, cancelled.await].map(|outcome| outcome.unwrap().unwrap().unwrap());
        assert!(outcomes[0].applied != outcomes[1].applied, "one of them ends it");
        let end = nodes[1].get(&id, at(7)).await.unwrap().unwrap();
        assert!(
            outcomes.iter().all(|outcome| outcome.record == end),
            "both learn of that end"
        );
        assert_eq!(
            (end.version, end.result.is_some()),
            (2, end.status == TaskStatus::Completed)
        );
        let late: Mutation = Arc::new(|task| task.progressed(1, at(9), &Report::new(9.0, "late".into())));
        let late = nodes[0]
            .update(&id, at(9), WriteId::new(4), late)
            .await
            .unwrap()
            .unwrap();
        assert!(
            !late.applied && late.record == end,
            "nothing that comes later changes it"
        );
    }
}

#[tokio::test]
async fn tasks_whose_node_is_gone_are_found_and_no_others() {
    let Some((_, url)) = fresh() else { return };
    let prefix = unique("leases:");
    let store = options(url).key_prefix(prefix.as_str()).open().unwrap();
    let leases = store.as_expired_leases().unwrap();
    create_two_hundred_leases(&store).await;
    let plant = "UPDATE mcp_tasks SET record = '{' WHERE prefix = $1 AND id = 't005'";
    assert_eq!(raw(url).await.execute(plant, &[&prefix]).await.unwrap(), 1);
    let found = async |millis, limit| leases.expired_leases(at(millis), limit).await.unwrap().len();
    assert_eq!(found(0, 500).await, 0);
    assert_eq!(found(100, 500).await, 100 - 3);
    assert_eq!(found(100, 7).await, 7);
    assert_eq!(found(1_000, 500).await, 200 - 3);
    assert_eq!(found(1_001, 500).await, 100 - 3, "what has expired needs no sweep");
    assert_eq!(found(10_001, 500).await, 100 - 2);
}

/// How many statements the store sends for `operation`.
async fn round_trips(statements: &tokio_postgres::Client, operation: impl Future<Output = ()>) -> i64 {
    let count = "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements WHERE query LIKE '%mcp_tasks WHERE%' \
                 OR query LIKE '%INTO mcp_tasks (%' OR query LIKE '%UPDATE mcp_tasks SET%'";
    let calls = async || statements.query_one(count, &[]).await.unwrap().get::<_, i64>(0);
    let before = calls().await;
    operation.await;
    calls().await - before
}

#[tokio::test]
async fn a_life_from_create_to_complete_to_get_is_three_round_trips() {
    let preload = ["-c", "shared_preload_libraries=pg_stat_statements"];
    let Some(server) = mcp_tasks_tests::servers::postgres(&preload) else {
        return;
    };
    let statements = raw(server.url()).await;
    statements
        .batch_execute("CREATE EXTENSION pg_stat_statements")
        .await
        .unwrap();
    let store = options(server.url()).open().unwrap();
    let life = async |id: &'static str| {
        let task = TaskId::new(id);
        store.create(record(id, None)).await.unwrap();
        let end: Mutation = Arc::new(|task| task.completed(1, at(1), &json(r#"{"content":[]}"#), None));
        store.update(&task, at(1), WriteId::new(2), end).await.unwrap().unwrap();
        let found = store.get(&task, at(1)).await.unwrap().unwrap();
        assert_eq!(found.status, TaskStatus::Completed);
    };
    assert_eq!(round_trips(&statements, life("first")).await, 3);
    assert_eq!(round_trips(&statements, life("second")).await, 3);
}
