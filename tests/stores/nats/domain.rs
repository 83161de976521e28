//! A bucket in another JetStream domain than the server's own: applications connect to a leaf without JetStream.

use futures::StreamExt;
use mcp_tasks::store::NatsStore;
use mcp_tasks_core::{TaskChange, TaskId, TaskStore, WriteId};
use mcp_tasks_tests::servers::{DbServer, free_port, nats_without_jetstream};
use tempfile::TempDir;

use crate::records::{at, increment, record};

/// A hub with the domain `hub`, and a leaf of it that stores nothing.
fn hub_and_leaf() -> Option<([DbServer; 2], TempDir)> {
    let directory = tempfile::tempdir().expect("a directory");
    let (port, path) = (free_port(), directory.path().display().to_string());
    let configured = |name: &str, text: String| {
        let file = directory.path().join(name);
        std::fs::write(&file, text).expect("the directory is there");
        nats_without_jetstream(&["--config", file.to_str().expect("the path is text")])
    };
    let hub = configured(
        "hub.conf",
        format!(
            "server_name: hub\njetstream {{ store_dir: \"{path}\", domain: hub }}\nleafnodes {{ listen: \"127.0.0.1:{port}\" }}\n"
        ),
    )?;
    let leaf = configured(
        "leaf.conf",
        format!("server_name: leaf\nleafnodes {{ remotes: [ {{ url: \"nats://127.0.0.1:{port}\" }} ] }}\n"),
    )?;
    Some(([hub, leaf], directory))
}

#[tokio::test]
async fn a_bucket_in_another_domain_is_used_through_a_leaf() {
    let Some(([hub, leaf], _directory)) = hub_and_leaf() else {
        return;
    };
    let far = NatsStore::open(&format!("{}?domain=hub", leaf.url())).unwrap();
    // The leaf takes clients before it has reached the hub.
    super::until(async || far.create(record("t", Some(1_000))).await.ok()).await;
    let id = TaskId::new("t");
    let updated = far.update(&id, at(1), WriteId::new(2), increment()).await.unwrap();
    assert_eq!(updated.unwrap().record.version, 2);
    // At the hub itself it is the same bucket, with the domain or without.
    for url in [hub.url().to_owned(), format!("{}?domain=hub", hub.url())] {
        let near = NatsStore::open(&url).unwrap();
        assert_eq!(near.get(&id, at(1)).await.unwrap().unwrap().version, 2, "{url}");
    }
    let near = NatsStore::open(hub.url()).unwrap();
    let mut changes = far.as_change_feed().unwrap().changes();
    assert_eq!(changes.next().await, Some(TaskChange::Resumed));
    assert_eq!(changes.next().await, Some(TaskChange::Resumed), "it follows the bucket");
    near.create(record("u", None)).await.unwrap();
    let told = TaskChange::Changed {
        id: TaskId::new("u"),
        version: Some(1),
    };
    assert_eq!(changes.next().await, Some(told));
    assert_eq!(far.as_sweep().unwrap().sweep(at(2_000)).await.unwrap(), 1);
    assert!(near.get(&id, at(1)).await.unwrap().is_none());
    near.delete(&TaskId::new("u")).await.unwrap();
    assert!(far.get(&TaskId::new("u"), at(1)).await.unwrap().is_none());

    // A domain that is not there, or not yet.
    let nowhere = NatsStore::open(&format!("{}?domain=elsewhere", leaf.url())).unwrap();
    let error = nowhere.create(record("v", None)).await.unwrap_err();
    assert!(
        error.is_retryable() && error.to_string().contains("`elsewhere`"),
        "{error}"
    );
}
