//! Tables: made, shared, and refused.

use mcp_tasks::store::{PostgresOptions, PostgresStore};
use mcp_tasks_core::{StoreError, TaskId, TaskStore};
use tokio_postgres::NoTls;

use super::{database, options, raw};
use crate::records::{at, record};

fn assert_refused(error: &StoreError, words: &str) {
    assert!(matches!(error, StoreError::Refused { .. }), "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_start_at_once_on_an_empty_database_all_succeed() {
    let Some(url) = database().await else { return };
    let mut nodes = tokio::task::JoinSet::new();
    for n in 0..8 {
        let store = options(&url).schema("tasks of \"ours\"").open().unwrap();
        nodes.spawn(async move { store.create(record(&format!("t{n}"), None)).await.map(drop) });
    }
    while let Some(created) = nodes.join_next().await {
        created.unwrap().unwrap();
    }
    let count = r#"SELECT count(*) FROM "tasks of ""ours""".mcp_tasks"#;
    let stored: i64 = raw(&url).await.query_one(count, &[]).await.unwrap().get(0);
    assert_eq!(stored, 8);
}

#[tokio::test]
async fn tables_of_a_later_release_are_refused_and_left_alone() {
    let Some(url) = database().await else { return };
    let raw = raw(&url).await;
    let id = TaskId::new("t");
    options(&url).open().unwrap().create(record("t", None)).await.unwrap();
    raw.batch_execute("UPDATE mcp_tasks_layout SET layout = 2; ALTER TABLE mcp_tasks RENAME record TO body")
        .await
        .unwrap();
    let store = options(&url).open().unwrap();
    for outcome in [
        store.get(&id, at(1)).await.map(drop),
        store.create(record("u", None)).await.map(drop),
    ] {
        assert_refused(&outcome.unwrap_err(), "upgrade this node");
    }
    raw.batch_execute("UPDATE mcp_tasks_layout SET layout = 1; ALTER TABLE mcp_tasks RENAME body TO record")
        .await
        .unwrap();
    assert!(store.get(&id, at(1)).await.unwrap().is_some(), "set-up is tried again");
}

#[tokio::test]
async fn another_programs_table_is_refused_and_a_schema_helps() {
    let Some(url) = database().await else { return };
    raw(&url)
        .await
        .batch_execute("CREATE TABLE mcp_tasks (theirs text)")
        .await
        .unwrap();
    let error = options(&url)
        .open()
        .unwrap()
        .create(record("t", None))
        .await
        .unwrap_err();
    assert_refused(&error, "schema=");
    let store = PostgresStore::open(&format!("{url}?schema=ours")).unwrap();
    store.create(record("t", None)).await.unwrap();
}

#[tokio::test]
async fn a_database_that_cannot_hold_every_text_is_refused() {
    let Some(url) = database().await else { return };
    let name = super::unique("latin");
    raw(&url)
        .await
        .batch_execute(&format!(
            "CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"
        ))
        .await
        .unwrap();
    let (server, _) = url.rsplit_once('/').unwrap();
    let store = options(&format!("{server}/{name}")).open().unwrap();
    assert_refused(&store.create(record("t", None)).await.unwrap_err(), "UTF8");
}

#[tokio::test]
async fn a_user_who_may_not_create_tables_works_with_those_that_are_there() {
    let Some(url) = database().await else { return };
    let user = super::unique("worker");
    let raw = raw(&url).await;
    raw.batch_execute(&format!(
        "CREATE ROLE {user} LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC"
    ))
    .await
    .unwrap();
    let theirs = url.replace("postgres@", &format!("{user}@"));
    let store = options(&theirs).open().unwrap();
    let error = store.create(record("t", None)).await.unwrap_err();
    assert_refused(&error, "no right");
    options(&url).open().unwrap().delete(&TaskId::new("t")).await.unwrap();
    let tables = "mcp_tasks, mcp_tasks_feed, mcp_tasks_layout";
    raw.batch_execute(&format!("GRANT SELECT, INSERT, UPDATE, DELETE ON {tables} TO {user}"))
        .await
        .unwrap();
    store.create(record("t", Some(1))).await.unwrap();
    assert_eq!(store.as_sweep().unwrap().sweep(at(2)).await.unwrap(), 1);
}

#[tokio::test]
async fn a_pool_of_the_applications_can_be_handed_in() {
    let Some(url) = database().await else { return };
    let config: tokio_postgres::Config = url.parse().unwrap();
    let manager = deadpool_postgres::Manager::new(config, NoTls);
    let pool = deadpool_postgres::Pool::builder(manager).max_size(2).build().unwrap();
    let (id, store) = (TaskId::new("t"), PostgresStore::with_pool(pool.clone()));
    store.create(record("t", None)).await.unwrap();
    assert!(store.as_change_feed().is_none());
    let beside = pool.get().await.unwrap();
    let stored: i64 = beside
        .query_one("SELECT count(*) FROM mcp_tasks", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(stored, 1);
    let with_both = PostgresOptions::new(&url).unwrap().pool(pool).open().unwrap();
    assert!(with_both.get(&id, at(1)).await.unwrap().is_some() && with_both.as_change_feed().is_some());
}
