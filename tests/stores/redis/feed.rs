//! Hearing of changes.

use std::time::Duration;

use futures::StreamExt;
use mcp_tasks_core::store::ChangeStream;
use mcp_tasks_core::{TaskChange, TaskId, TaskStore, WriteId};

use super::fresh;
use crate::records::{at, increment, record};

/// Longer than anything here takes; it ends a test that would hang.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn changed(id: &str, version: Option<u64>) -> TaskChange {
    TaskChange::Changed {
        id: TaskId::new(id),
        version,
    }
}

pub(super) async fn next(changes: &mut ChangeStream) -> TaskChange {
    let next = tokio::time::timeout(PATIENCE, changes.next()).await;
    next.expect("the feed says something").expect("the store is there")
}

/// Takes the two `Resumed` at a stream's beginning: it begins, and it has reached the server. Called at once after the
/// stream was asked for, as two that no listener has taken become one.
pub(super) async fn subscribed(changes: &mut ChangeStream) {
    assert_eq!(next(changes).await, TaskChange::Resumed);
    assert_eq!(next(changes).await, TaskChange::Resumed);
}

#[tokio::test]
async fn a_write_by_one_store_is_heard_by_another() {
    let Some(fresh) = fresh() else { return };
    let other = fresh.other();
    let mut changes = other.as_change_feed().unwrap().changes();
    subscribed(&mut changes).await;
    let mut own = fresh.as_change_feed().unwrap().changes();
    subscribed(&mut own).await;
    let id = TaskId::new("a task");
    fresh.create(record("a task", None)).await.unwrap();
    other.update(&id, at(1), WriteId::new(2), increment()).await.unwrap();
    fresh.delete(&id).await.unwrap();
    fresh.delete(&id).await.unwrap();
    fresh.create(record("last", None)).await.unwrap();
    for stream in [&mut changes, &mut own] {
        for expected in [
            changed("a task", Some(1)),
            changed("a task", Some(2)),
            changed("a task", None),
            changed("last", Some(1)),
        ] {
            assert_eq!(next(stream).await, expected);
        }
    }
}

#[tokio::test]
async fn after_the_server_restarted_the_feed_resumes() {
    let Some(mut fresh) = fresh() else { return };
    let mut changes = fresh.as_change_feed().unwrap().changes();
    subscribed(&mut changes).await;
    fresh.create(record("before", None)).await.unwrap();
    assert_eq!(next(&mut changes).await, changed("before", Some(1)));
    for round in 0..2 {
        fresh.keeps.kill();
        fresh.keeps.start();
        assert_eq!(next(&mut changes).await, TaskChange::Resumed);
        let id = format!("after{round}");
        fresh.create(record(&id, None)).await.unwrap();
        assert_eq!(next(&mut changes).await, changed(&id, Some(1)));
    }
    // The connection alone is cut.
    let cut: u32 = redis::cmd("CLIENT")
        .arg("KILL")
        .arg("TYPE")
        .arg("pubsub")
        .query(&mut fresh.raw())
        .unwrap();
    assert_eq!(cut, 1);
    assert_eq!(next(&mut changes).await, TaskChange::Resumed);
}

#[tokio::test]
async fn there_is_no_connection_without_a_listener_and_the_stream_ends_with_the_store() {
    let Some(fresh) = fresh() else { return };
    let listeners = |raw: &mut redis::Connection| -> u32 {
        let (_, count): (String, u32) = redis::cmd("PUBSUB")
            .arg("NUMSUB")
            .arg("mcp-tasks:changes")
            .query(raw)
            .unwrap();
        count
    };
    let mut raw = fresh.raw();
    let other = fresh.other();
    other.create(record("t", None)).await.unwrap();
    assert_eq!(listeners(&mut raw), 0);
    let mut changes = other.as_change_feed().unwrap().changes();
    let mut more = other.as_change_feed().unwrap().changes();
    subscribed(&mut changes).await;
    assert_eq!(next(&mut more).await, TaskChange::Resumed);
    assert_eq!(listeners(&mut raw), 1, "one connection for all");
    drop((changes, more));
    super::until("the connection is closed without a listener", || {
        listeners(&mut raw) == 0
    })
    .await;
    let mut changes = other.as_change_feed().unwrap().changes();
    subscribed(&mut changes).await;
    drop(other);
    assert_eq!(changes.next().await, None);
    super::until("the connection is closed", || listeners(&mut raw) == 0).await;
}

#[test]
fn a_stream_may_be_asked_for_outside_a_runtime_and_outlive_one() {
    let Some(fresh) = fresh() else { return };
    let mut changes = fresh.as_change_feed().unwrap().changes();
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    runtime().block_on(subscribed(&mut changes));
    runtime().block_on(async {
        assert_eq!(
            next(&mut changes).await,
            TaskChange::Resumed,
            "the connection went with its runtime"
        );
        fresh.create(record("t", None)).await.unwrap();
        assert_eq!(next(&mut changes).await, changed("t", Some(1)));
    });
}
