//! Buckets: made, found, unfit, full; what keys may be.

use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};
use mcp_tasks::store::{NatsOptions, NatsStore};
use mcp_tasks_core::{StoreError, TaskId, TaskStore, WriteId};
use mcp_tasks_tests::servers::nats_without_jetstream;

use super::Fresh;
use crate::records::{at, increment, json, record};

fn refusal<T: std::fmt::Debug>(outcome: Result<T, StoreError>) -> String {
    match outcome.unwrap_err() {
        StoreError::Refused { reason, .. } => reason,
        other => panic!("not a refusal: {other}"),
    }
}

/// A bucket as other clients make it. (The driver's own function asks about the account first, in a form that servers before
/// 2.10 do not answer in.)
fn kv(bucket: &str) -> Config {
    Config {
        name: format!("KV_{bucket}"),
        subjects: vec![format!("$KV.{bucket}.>")],
        max_messages_per_subject: 1,
        discard: DiscardPolicy::New,
        allow_rollup: true,
        deny_delete: true,
        num_replicas: 1,
        ..Config::default()
    }
}

#[tokio::test]
async fn a_bucket_is_made_at_first_use_as_clients_of_buckets_expect_it() {
    let Some(fresh) = Fresh::with(&[], |options| options.max_bytes(1 << 30)) else {
        return;
    };
    let raw = fresh.raw().await;
    assert!(
        raw.get_key_value("mcp-tasks").await.is_err(),
        "nothing is made before it is used"
    );
    fresh.create(record("t", None)).await.unwrap();
    let bucket = fresh.bucket().await;
    let config = &bucket.stream.cached_info().config;
    assert_eq!(
        (config.storage, config.discard),
        (StorageType::File, DiscardPolicy::New)
    );
    assert_eq!((config.max_messages_per_subject, config.num_replicas), (1, 1));
    assert_eq!(
        (config.max_bytes, config.max_messages, config.max_age),
        (1 << 30, -1, std::time::Duration::ZERO)
    );
    assert!(config.allow_direct && config.allow_rollup && config.deny_delete && !config.deny_purge);
    let text = bucket.get("t").await.unwrap().unwrap();
    assert!(
        text.starts_with(b"{") && text.ends_with(b"}"),
        "an ordinary id is its key, a record its value"
    );
    // What other clients make is found fit, also where it does not allow direct reads.
    raw.create_stream(kv("drivers")).await.unwrap();
    let store = NatsOptions::new(fresh.keeps.url())
        .unwrap()
        .key_prefix("drivers:")
        .open()
        .unwrap();
    store.create(record("t", None)).await.unwrap();
}

#[tokio::test]
async fn two_that_make_the_bucket_at_once_share_it() {
    let Some(fresh) = Fresh::new() else { return };
    let (one, other) = (fresh.another(), fresh.another());
    let (a, b) = tokio::join!(one.create(record("a", None)), other.create(record("b", None)));
    a.unwrap();
    b.unwrap();
    assert!(one.get(&TaskId::new("b"), at(1)).await.unwrap().is_some());
}

#[tokio::test]
async fn prefixes_keep_tasks_apart() {
    let Some(fresh) = Fresh::new() else { return };
    let other = NatsOptions::new(fresh.keeps.url())
        .unwrap()
        .key_prefix("other")
        .open()
        .unwrap();
    assert_eq!((fresh.store.bucket(), other.bucket()), ("mcp-tasks", "other"));
    fresh.create(record("t", None)).await.unwrap();
    other.create(record("t", None)).await.unwrap();
    other.delete(&TaskId::new("t")).await.unwrap();
    assert!(fresh.get(&TaskId::new("t"), at(1)).await.unwrap().is_some());
    assert!(refusal(NatsOptions::new("nats://h").unwrap().key_prefix("a.b:").open()).contains("`a.b:`"));
}

#[tokio::test]
async fn a_bucket_that_would_lose_tasks_is_refused_and_others_are_used() {
    let Some(fresh) = Fresh::new() else { return };
    let raw = fresh.raw().await;
    let aging = Config {
        max_age: std::time::Duration::from_secs(3600),
        ..kv("aging")
    };
    let memory = Config {
        storage: StorageType::Memory,
        max_messages_per_subject: 5,
        ..kv("memory")
    };
    raw.create_stream(aging).await.unwrap();
    raw.create_stream(memory).await.unwrap();
    let open = |prefix| {
        NatsOptions::new(fresh.keeps.url())
            .unwrap()
            .key_prefix(prefix)
            .open()
            .unwrap()
    };
    let reason = refusal(open("aging:").get(&TaskId::new("t"), at(0)).await);
    assert!(reason.contains("aging") && reason.contains("max_age"), "{reason}");
    let memory = open("memory:");
    memory.create(record("t", Some(5))).await.unwrap();
    memory
        .update(&TaskId::new("t"), at(1), WriteId::new(2), increment())
        .await
        .unwrap();
    assert_eq!(memory.as_sweep().unwrap().sweep(at(6)).await.unwrap(), 1);
    assert!(memory.get(&TaskId::new("t"), at(5)).await.unwrap().is_none());
}

#[tokio::test]
async fn a_full_bucket_refuses_and_keeps_what_it_has() {
    let Some(fresh) = Fresh::with(&[], |options| options.max_bytes(20_000)) else {
        return;
    };
    let mut stored = Vec::new();
    let reason = loop {
        let id = format!("t{}", stored.len());
        let mut big = record(&id, Some(10));
        big.arguments = json(&format!(r#"{{"text":"{}"}}"#, "x".repeat(3_000)));
        match fresh.create(big).await {
            Ok(created) => stored.push(created),
            outcome => break refusal(outcome),
        }
    };
    assert!(reason.contains("full"), "{reason}");
    assert!((3..7).contains(&stored.len()), "{}", stored.len());
    for record in &stored {
        assert_eq!(fresh.get(&record.task_id, at(1)).await.unwrap().as_ref(), Some(record));
    }
    assert_eq!(
        fresh.as_sweep().unwrap().sweep(at(11)).await.unwrap(),
        stored.len() as u64
    );
    fresh.create(record("t", None)).await.expect("there is room again");
}

#[tokio::test]
async fn what_is_larger_than_a_message_is_refused_and_says_why() {
    let Some(fresh) = Fresh::new() else { return };
    let mut big = record("big", None);
    big.arguments = json(&format!(r#"{{"text":"{}"}}"#, "x".repeat(1_100_000)));
    let reason = refusal(fresh.create(big).await);
    assert!(reason.contains("max_payload"), "{reason}");
    fresh
        .create(record("small", None))
        .await
        .expect("the connection lives on");
}

#[tokio::test]
async fn without_jetstream_the_store_says_so() {
    let Some(server) = nats_without_jetstream(&[]) else {
        return;
    };
    let store = NatsStore::open(server.url()).unwrap();
    let reason = refusal(store.get(&TaskId::new("t"), at(0)).await);
    assert!(reason.contains("--jetstream"), "{reason}");
}

#[tokio::test]
async fn ids_of_any_kind_are_kept_apart_and_none_hurts_the_connection() {
    let Some(fresh) = Fresh::new() else { return };
    let ids = [
        "", "=", "a.b", "a..b", ".", ">", "*", "a b", "a\tb\r\n", "a\0b", "é", "A", "a", "=2E", "a/b", "/", "$KV",
        "a=2Eb",
    ];
    for (n, id) in (0..).zip(ids) {
        let mut task = record(id, None);
        task.poll_interval_ms = n;
        fresh
            .create(task)
            .await
            .unwrap_or_else(|error| panic!("{id:?}: {error}"));
    }
    for (n, id) in (0..).zip(ids) {
        let found = fresh.get(&TaskId::new(id), at(1)).await.unwrap().unwrap();
        assert_eq!((found.task_id.as_str(), found.poll_interval_ms), (id, n));
    }
    for long in [600, 5_000, 3_000_000] {
        let id = "x".repeat(long);
        assert!(fresh.get(&TaskId::new(&id), at(1)).await.unwrap().is_none());
        fresh.delete(&TaskId::new(&id)).await.unwrap();
        assert!(refusal(fresh.create(record(&id, None)).await).contains("longer"));
    }
    assert!(fresh.get(&TaskId::new("a"), at(1)).await.unwrap().is_some());
}

#[tokio::test]
async fn a_bucket_that_is_removed_is_made_again() {
    let Some(fresh) = Fresh::new() else { return };
    fresh.create(record("t", None)).await.unwrap();
    fresh.raw().await.delete_key_value("mcp-tasks").await.unwrap();
    let created = super::until(async || fresh.create(record("u", None)).await.ok()).await;
    assert_eq!(created.version, 1);
    assert!(fresh.get(&TaskId::new("t"), at(1)).await.unwrap().is_none());
}
