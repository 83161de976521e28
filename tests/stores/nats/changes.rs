//! The change feed.

use std::time::Duration;

use futures::StreamExt;
use mcp_tasks::store::NatsOptions;
use mcp_tasks_core::{ChangeStream, TaskChange, TaskId, TaskStore, WriteId};

use super::{Fresh, until};
use crate::records::{at, increment, record};

async fn next(changes: &mut ChangeStream) -> Option<TaskChange> {
    let next = tokio::time::timeout(Duration::from_secs(60), changes.next()).await;
    next.expect("a change comes")
}

fn changed(id: &str, version: Option<u64>) -> Option<TaskChange> {
    let id = TaskId::new(id);
    Some(TaskChange::Changed { id, version })
}

/// A stream that follows: one `Resumed` at its beginning, one when the bucket is followed.
async fn following(store: &dyn TaskStore) -> ChangeStream {
    let mut changes = store.as_change_feed().unwrap().changes();
    for _ in 0..2 {
        assert_eq!(next(&mut changes).await, Some(TaskChange::Resumed));
    }
    changes
}

#[tokio::test]
async fn a_write_by_one_store_is_heard_by_another() {
    let Some(fresh) = Fresh::new() else { return };
    for n in 0..100 {
        fresh.create(record(&format!("before{n}"), Some(0))).await.unwrap();
    }
    let listener = fresh.another();
    let mut changes = following(&listener).await;
    fresh.create(record("odd id.*", None)).await.unwrap();
    let id = TaskId::new("odd id.*");
    fresh.update(&id, at(1), WriteId::new(2), increment()).await.unwrap();
    assert_eq!(next(&mut changes).await, changed("odd id.*", Some(1)));
    assert_eq!(next(&mut changes).await, changed("odd id.*", Some(2)));
    // What expires is not reported, what is deleted is.
    assert_eq!(fresh.as_sweep().unwrap().sweep(at(1)).await.unwrap(), 100);
    fresh.delete(&id).await.unwrap();
    assert_eq!(next(&mut changes).await, changed("odd id.*", None));
    assert!(listener.get(&id, at(1)).await.unwrap().is_none());
    // A second listener in the process costs no second reading.
    let mut second = listener.as_change_feed().unwrap().changes();
    assert_eq!(next(&mut second).await, Some(TaskChange::Resumed));
    listener.create(record("own", None)).await.unwrap();
    for changes in [&mut changes, &mut second] {
        assert_eq!(next(changes).await, changed("own", Some(1)));
    }
}

#[tokio::test]
async fn the_feed_ends_with_its_store_and_begins_outside_a_runtime() {
    let Some(fresh) = Fresh::new() else { return };
    let (store, unpolled) = (fresh.another(), fresh.another());
    let idle = std::thread::spawn(move || unpolled.as_change_feed().unwrap().changes()).join();
    assert_eq!(next(&mut idle.unwrap()).await, None, "its store is gone");
    let mut changes = following(&store).await;
    drop(store);
    assert_eq!(next(&mut changes).await, None);
}

/// Whatever comes, until a write that is made again and again is heard of; returns whether a `Resumed` was among it.
async fn heard_again(changes: &mut ChangeStream, fresh: &Fresh, name: &str) -> bool {
    let (mut resumed, mut n) = (false, 0);
    loop {
        n += 1;
        let id = format!("{name}{n}");
        if fresh.create(record(&id, None)).await.is_err() {
            continue;
        }
        let wait = tokio::time::timeout(Duration::from_millis(500), async {
            loop {
                match changes.next().await.expect("the store is there") {
                    TaskChange::Resumed => resumed = true,
                    change => {
                        if Some(change) == changed(&id, Some(1)) {
                            break;
                        }
                    }
                }
            }
        });
        if wait.await.is_ok() {
            return resumed;
        }
        assert!(n < 200, "the feed does not come back");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_of_the_server_the_feed_says_resumed_and_goes_on() {
    let Some(mut fresh) = Fresh::new() else { return };
    fresh.create(record("before", None)).await.unwrap();
    let listener = fresh.another();
    let mut changes = following(&listener).await;
    for round in 0..2 {
        fresh.keeps.kill();
        fresh.keeps.start();
        assert!(
            heard_again(&mut changes, &fresh, &format!("after{round}-")).await,
            "it says Resumed"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_made_anew_is_followed_from_its_beginning() {
    let Some(fresh) = Fresh::new() else { return };
    for n in 0..50 {
        fresh.create(record(&format!("before{n}"), None)).await.unwrap();
    }
    let listener = fresh.another();
    let mut changes = following(&listener).await;
    fresh.raw().await.delete_key_value("mcp-tasks").await.unwrap();
    assert!(heard_again(&mut changes, &fresh, "after").await);
    // The index was made anew as well.
    fresh.create(record("short", Some(0))).await.unwrap();
    until(async || (listener.as_sweep().unwrap().sweep(at(1)).await.unwrap() == 1).then_some(())).await;
}

#[tokio::test]
async fn a_connection_of_the_application_serves_as_well() {
    let Some(fresh) = Fresh::new() else { return };
    let client = async_nats::connect(fresh.keeps.url()).await.unwrap();
    let store = NatsOptions::from_client(client).open().unwrap();
    let mut changes = following(&store).await;
    fresh.create(record("t", None)).await.unwrap();
    assert_eq!(next(&mut changes).await, changed("t", Some(1)));
    assert!(store.get(&TaskId::new("t"), at(1)).await.unwrap().is_some());
}
