//! Users, rights and certificates.

use std::time::{Duration, Instant};

use mcp_tasks::store::{NatsOptions, NatsStore};
use mcp_tasks_core::{StoreError, TaskId, TaskStore};
use mcp_tasks_tests::certificates;
use mcp_tasks_tests::servers::{DbServer, nats};
use tempfile::TempDir;

use crate::records::{at, record};

/// The whole of an error, as a log shows it.
fn words(error: &StoreError) -> String {
    format!(
        "{error} {error:?} {}",
        std::error::Error::source(error)
            .map(ToString::to_string)
            .unwrap_or_default()
    )
}

/// The server's URL with something in front of the host.
fn with_user(server: &DbServer, user: &str) -> String {
    server.url().replace("nats://", &format!("nats://{user}@"))
}

async fn works(store: &NatsStore, id: &str) {
    store
        .create(record(id, None))
        .await
        .unwrap_or_else(|error| panic!("{}", words(&error)));
    assert!(store.get(&TaskId::new(id), at(1)).await.unwrap().is_some());
}

async fn is_refused(store: &NatsStore) -> String {
    let start = Instant::now();
    let error = store.create(record("refused", None)).await.unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
    assert!(start.elapsed() < Duration::from_secs(8), "it is said, not waited for");
    words(&error)
}

#[tokio::test]
async fn a_password_opens_and_a_wrong_one_is_refused_without_being_shown() {
    let Some(server) = nats(&["--user", "me", "--pass", "p@ss:w/rd"]) else {
        return;
    };
    works(
        &NatsStore::open(&with_user(&server, "me:p%40ss%3Aw%2Frd")).unwrap(),
        "a",
    )
    .await;
    let in_code = NatsOptions::new(server.url())
        .unwrap()
        .user_and_password("me", "p@ss:w/rd");
    works(&in_code.open().unwrap(), "b").await;
    for url in [
        with_user(&server, "me:hunter2"),
        with_user(&server, "hunter2"),
        server.url().to_owned(),
    ] {
        let store = NatsStore::open(&url).unwrap();
        let words = is_refused(&store).await;
        assert!(words.contains("password") && !words.contains("hunter2"), "{words}");
        assert!(!format!("{store:?}").contains("hunter2"));
    }
}

#[tokio::test]
async fn a_token_opens() {
    let Some(server) = nats(&["--auth", "s3cr3t"]) else {
        return;
    };
    works(&NatsStore::open(&with_user(&server, "s3cr3t")).unwrap(), "a").await;
    let words = is_refused(&NatsStore::open(&with_user(&server, "hunter2")).unwrap()).await;
    assert!(!words.contains("hunter2"), "{words}");
}

/// A server with a configuration of its own, which lies in the directory.
fn configured(text: &str) -> Option<(DbServer, TempDir)> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nats.conf");
    std::fs::write(&path, text).unwrap();
    let server = nats(&["--config", path.to_str().unwrap()])?;
    Some((server, directory))
}

#[tokio::test]
async fn an_nkey_opens() {
    let config = "authorization { users = [ { nkey: UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4 } ] }";
    let Some((server, directory)) = configured(config) else {
        return;
    };
    let seed = directory.path().join("user.nk");
    std::fs::write(&seed, "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY\n").unwrap();
    works(
        &NatsStore::open(&format!("{}?nkey={}", server.url(), seed.display())).unwrap(),
        "a",
    )
    .await;
    let words = is_refused(&NatsStore::open(&format!("{}?nkey=/nowhere.nk", server.url())).unwrap()).await;
    assert!(words.contains("/nowhere.nk"), "{words}");
    let words = is_refused(&NatsStore::open(&format!("{}?creds=/nowhere.creds", server.url())).unwrap()).await;
    assert!(words.contains("/nowhere.creds"), "{words}");
}

#[tokio::test]
async fn who_may_not_make_buckets_uses_one_that_is_there_and_a_missing_right_is_named() {
    let rights = |publish: &str| {
        format!(r#"permissions: {{ publish: [{publish}"$JS.API.STREAM.INFO.KV_mcp-tasks"], subscribe: ["_INBOX.>"] }}"#)
    };
    let uses = r#""$KV.mcp-tasks.>", "$JS.API.DIRECT.GET.KV_mcp-tasks.>", "$JS.API.STREAM.PURGE.KV_mcp-tasks",
                  "$JS.API.CONSUMER.CREATE.KV_mcp-tasks", "$JS.API.CONSUMER.CREATE.KV_mcp-tasks.>", "$JS.FC.>","#;
    let reads = r#""$JS.API.DIRECT.GET.KV_mcp-tasks.>","#;
    let config = format!(
        "authorization {{ users = [ {{ user: admin, password: a }}, {{ user: app, password: b, {} }}, \
         {{ user: reader, password: c, {} }} ] }}",
        rights(uses),
        rights(reads)
    );
    let Some((server, _directory)) = configured(&config) else {
        return;
    };
    let [admin, app, reader] =
        ["admin:a", "app:b", "reader:c"].map(|user| NatsStore::open(&with_user(&server, user)).unwrap());
    let words = is_refused(&app).await;
    assert!(words.contains("STREAM.CREATE"), "{words}");
    works(&admin, "t").await;
    works(&app, "u").await;
    assert_eq!(app.as_sweep().unwrap().sweep(at(1)).await.unwrap(), 0);
    app.delete(&TaskId::new("u")).await.unwrap();
    let words = is_refused(&reader).await;
    assert!(words.contains("$KV.mcp-tasks.refused"), "{words}");
    assert!(reader.get(&TaskId::new("t"), at(1)).await.unwrap().is_some());
    let error = reader.as_sweep().unwrap().sweep(at(1)).await.unwrap_err();
    assert!(
        matches!(error, StoreError::Refused { .. }) && words_of_consumer(&error),
        "{error}"
    );
}

fn words_of_consumer(error: &StoreError) -> bool {
    error.to_string().contains("CONSUMER.CREATE")
}

#[tokio::test]
async fn an_account_without_jetstream_is_refused() {
    let config = "accounts { A: { users: [ { user: me, password: a } ] }, B: { jetstream: enabled, users: [ { user: you, \
                  password: b } ] } }";
    let Some((server, _directory)) = configured(config) else {
        return;
    };
    let words = is_refused(&NatsStore::open(&with_user(&server, "me:a")).unwrap()).await;
    assert!(words.contains("account"), "{words}");
    works(&NatsStore::open(&with_user(&server, "you:b")).unwrap(), "t").await;
}

#[tokio::test]
async fn tls_works_with_the_authority_and_is_refused_without() {
    let directory = tempfile::tempdir().unwrap();
    certificates::authority(directory.path(), "authority");
    certificates::certificate(directory.path(), "authority", "server");
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (certificate, key, authority) = (path("server.pem"), path("server.key"), path("authority.pem"));
    let tls = ["--tls", "--tlscert", &certificate, "--tlskey", &key];
    let Some(server) = nats(&tls) else { return };
    let url = server.url().replace("nats://", "tls://");
    works(&NatsStore::open(&format!("{url}?tlsca={authority}")).unwrap(), "a").await;
    works(
        &NatsStore::open(&format!("{}?tlsca={authority}", server.url())).unwrap(),
        "b",
    )
    .await;
    let words = is_refused(&NatsStore::open(&url).unwrap()).await;
    assert!(words.contains("tlsca"), "{words}");
    let words = is_refused(&NatsStore::open(&format!("{url}?tlsca=/nowhere.pem")).unwrap()).await;
    assert!(words.contains("/nowhere.pem"), "{words}");
    drop(server);
    // The server wants to see a certificate too.
    let verified = [&tls[..], &["--tlsverify", "--tlscacert", &authority]].concat();
    let Some(server) = nats(&verified) else { return };
    let url = server.url().replace("nats://", "tls://");
    let shown = format!("{url}?tlsca={authority}&tlscert={certificate}&tlskey={key}");
    works(&NatsStore::open(&shown).unwrap(), "a").await;
    let store = NatsStore::open(&format!("{url}?tlsca={authority}")).unwrap();
    assert!(store.get(&TaskId::new("a"), at(1)).await.is_err());
}

#[tokio::test]
async fn who_insists_on_tls_does_not_go_without() {
    let Some(server) = nats(&[]) else { return };
    let store = NatsStore::open(&server.url().replace("nats://", "tls://")).unwrap();
    assert!(store.get(&TaskId::new("a"), at(1)).await.is_err());
}
