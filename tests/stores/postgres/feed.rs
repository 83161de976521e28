//! Hearing of changes on other nodes.

use std::future::poll_fn;
use std::time::Duration;

use futures::StreamExt;
use mcp_tasks_core::{ChangeStream, TaskChange, TaskId, TaskStore, WriteId};
use mcp_tasks_tests::servers;

use super::{PATIENCE, database, options, raw};
use crate::records::{at, increment, record};

/// The next item; panics when none comes.
async fn next(stream: &mut ChangeStream) -> Option<TaskChange> {
    tokio::time::timeout(PATIENCE, stream.next())
        .await
        .expect("something is said")
}

/// The next change of a task, and how often it was said to look at everything before it.
async fn changed(stream: &mut ChangeStream) -> (String, Option<u64>) {
    loop {
        match next(stream).await.expect("the stream goes on") {
            TaskChange::Changed { id, version } => return (id.as_str().to_owned(), version),
            _ => continue,
        }
    }
}

/// Waits until the stream hears what is written, rather than being told to look.
async fn listening(stream: &mut ChangeStream, url: &str) {
    assert_eq!(next(stream).await, Some(TaskChange::Resumed), "it is the first item");
    let raw = raw(url).await;
    let query = "SELECT to_regclass('mcp_tasks_feed') IS NOT NULL AND \
                 EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() \
                 AND query LIKE '%wanted_until = greatest%' AND state = 'idle')";
    let said = async {
        while !raw.query_one(query, &[]).await.unwrap().get::<_, bool>(0) {
            tokio::select! {
                _ = tokio::time::sleep(Duration::from_millis(10)) => {}
                _ = stream.next() => {}
            }
        }
    };
    tokio::time::timeout(PATIENCE, said).await.expect("it listens");
}

#[tokio::test]
async fn a_write_by_one_node_is_heard_by_another() {
    let Some(url) = database().await else { return };
    let [writer, listener] = [0, 1].map(|_| options(&url).open().unwrap());
    let beside = options(&url).key_prefix("other:").open().unwrap();
    let mut changes = listener.as_change_feed().unwrap().changes();
    listening(&mut changes, &url).await;
    beside.create(record("beside", None)).await.unwrap();
    for id in ["t", "nul\0 and \\ and spaces"] {
        let task = TaskId::new(id);
        writer.create(record(id, None)).await.unwrap();
        assert_eq!(changed(&mut changes).await, (id.to_owned(), Some(1)));
        writer.update(&task, at(1), WriteId::new(2), increment()).await.unwrap();
        assert_eq!(changed(&mut changes).await, (id.to_owned(), Some(2)));
        assert_eq!(listener.get(&task, at(1)).await.unwrap().unwrap().version, 2);
        writer.delete(&task).await.unwrap();
        assert_eq!(changed(&mut changes).await, (id.to_owned(), None));
    }
    // A listener that comes later hears of what is written from then on.
    let mut later = listener.as_change_feed().unwrap().changes();
    assert_eq!(next(&mut later).await, Some(TaskChange::Resumed));
    writer.create(record("later", None)).await.unwrap();
    assert_eq!(changed(&mut later).await, ("later".to_owned(), Some(1)));
}

#[tokio::test]
async fn a_feed_whose_server_was_restarted_says_resumed_and_goes_on() {
    let Some(mut server) = servers::postgres(&["-c", "fsync=off"]) else {
        return;
    };
    let [writer, listener] = [0, 1].map(|_| options(server.url()).open().unwrap());
    let mut changes = listener.as_change_feed().unwrap().changes();
    listening(&mut changes, server.url()).await;
    writer.create(record("before", None)).await.unwrap();
    assert_eq!(changed(&mut changes).await.0, "before");
    server.kill();
    server.start();
    // There is no listener at this moment, or not yet.
    writer.create(record("missed", None)).await.unwrap();
    assert_eq!(next(&mut changes).await, Some(TaskChange::Resumed));
    let url = server.url().to_owned();
    let again = async {
        for n in 2_u32.. {
            writer
                .update(&TaskId::new("before"), at(1), WriteId::new(n.into()), increment())
                .await
                .unwrap();
            if let Ok((id, _)) = tokio::time::timeout(Duration::from_millis(200), changed(&mut changes)).await {
                return id;
            }
        }
        unreachable!("it counts on")
    };
    assert_eq!(tokio::time::timeout(PATIENCE, again).await.unwrap(), "before", "{url}");
}

#[tokio::test]
async fn a_stream_ends_with_its_store() {
    let Some(url) = database().await else { return };
    let store = options(&url).open().unwrap();
    let mut changes = store.as_change_feed().unwrap().changes();
    listening(&mut changes, &url).await;
    drop(store);
    let end = async { while changes.next().await.is_some() {} };
    tokio::time::timeout(PATIENCE, end).await.expect("it ends");
}

#[tokio::test]
async fn writes_are_told_only_while_there_is_a_listener() {
    let Some(url) = database().await else { return };
    let (store, raw) = (options(&url).key_prefix("quiet:").open().unwrap(), raw(&url).await);
    let (hearing, mut connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    let (sender, mut heard) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let tokio_postgres::AsyncMessage::Notification(notification) = message {
                sender.send(notification.payload().to_owned()).unwrap();
            }
        }
    });
    hearing.batch_execute("LISTEN \"quiet:\"").await.unwrap();
    store.create(record("quiet", None)).await.unwrap();
    // What is told is told in the order of commits: behind the end nothing of before comes.
    raw.batch_execute("NOTIFY \"quiet:\", 'end'").await.unwrap();
    assert_eq!(heard.recv().await.as_deref(), Some("end"));
    let mut changes = store.as_change_feed().unwrap().changes();
    listening(&mut changes, &url).await;
    store.create(record("told", None)).await.unwrap();
    assert_eq!(heard.recv().await.as_deref(), Some("1 told"));
}

#[tokio::test]
async fn a_listener_is_told_to_look_once_writes_from_before_are_done() {
    let Some(url) = database().await else { return };
    let store = options(&url).timeout(Duration::from_millis(500)).open().unwrap();
    let mut changes = store.as_change_feed().unwrap().changes();
    // At its beginning, when it listens, and when what did not know of it is over.
    for _ in 0..4 {
        assert_eq!(next(&mut changes).await, Some(TaskChange::Resumed));
    }
}
