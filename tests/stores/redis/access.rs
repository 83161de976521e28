//! Passwords, users, certificates, and that none of them is shown.

use mcp_tasks::store::{RedisOptions, RedisStore};
use mcp_tasks_core::{StoreError, TaskId, TaskStore};
use mcp_tasks_tests::certificates;
use mcp_tasks_tests::servers::{self, free_port};

use crate::records::{at, record};

/// What is said of a failure, all the way down, and by `Debug` of everything.
fn all_words(store: &RedisStore, error: &StoreError) -> String {
    let mut words = format!("{store:?} {error:?} {error}");
    let mut next = std::error::Error::source(error);
    while let Some(source) = next {
        words.push_str(&format!(" {source} {source:?}"));
        next = source.source();
    }
    words
}

async fn refused(store: &RedisStore) -> String {
    let error = store.create(record("t", None)).await.unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
    let words = all_words(store, &error);
    for secret in ["hunter2", "wrong-one"] {
        assert!(!words.contains(secret), "{words}");
    }
    error.to_string()
}

fn url(port: u16, user: &str) -> String {
    format!("redis://{user}127.0.0.1:{port}")
}

#[tokio::test]
async fn a_password_opens_and_a_wrong_one_is_refused_without_being_shown() {
    let Some(server) = servers::redis(&["--requirepass", "hunter2"]) else {
        return;
    };
    let right = RedisStore::open(&url(server.port(), ":hunter2@")).unwrap();
    right.create(record("t", None)).await.unwrap();
    let options = RedisOptions::new(&url(server.port(), ":hunter2@")).unwrap();
    assert!(!format!("{right:?} {options:?}").contains("hunter2"));
    let wrong = RedisStore::open(&url(server.port(), ":wrong-one@")).unwrap();
    assert!(refused(&wrong).await.contains("password"));
    let none = RedisStore::open(server.url()).unwrap();
    assert!(refused(&none).await.contains("password"));
    // Put right later, it goes on without a restart of this process.
    let mut raw = super::raw(&url(server.port(), ":hunter2@"));
    let () = redis::cmd("CONFIG")
        .arg("SET")
        .arg("requirepass")
        .arg("wrong-one")
        .query(&mut raw)
        .unwrap();
    wrong.create(record("u", None)).await.unwrap();
}

#[tokio::test]
async fn a_password_may_have_what_means_something_in_a_url() {
    let Some(server) = servers::redis(&["--requirepass", "p@s:s/w%20rd?#,"]) else {
        return;
    };
    let store = RedisStore::open(&url(server.port(), ":p%40s%3As%2Fw%2520rd%3F%23%2C@")).unwrap();
    store.create(record("t", None)).await.unwrap();
}

#[tokio::test]
async fn a_user_with_the_documented_rights_can_do_everything() {
    let rules = "user tasks on >p@ss,word ~mcp-tasks:* &mcp-tasks:* -@all +evalsha +script|load +exists +get +getrange \
                 +mget +set +del +zadd +zrem +zscore +zrangebyscore +publish +subscribe +ping";
    let weak = "user weak on >hunter2 ~other:* &* +@all";
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("users.acl");
    std::fs::write(
        &path,
        format!(
            "user default off\n{}\n{weak}\n",
            rules.split_whitespace().collect::<Vec<_>>().join(" ")
        ),
    )
    .unwrap();
    let Some(server) = servers::redis(&["--aclfile", path.to_str().unwrap()]) else {
        return;
    };
    let store = RedisStore::open(&url(server.port(), "tasks:p%40ss%2Cword@")).unwrap();
    store.create(record("t", Some(60_000))).await.unwrap();
    store.get(&TaskId::new("t"), at(1)).await.unwrap().unwrap();
    let mut task = record("u", None);
    task.execution.lease_until = Some(at(1));
    store.create(task).await.unwrap();
    let leases = store.as_expired_leases().unwrap();
    assert_eq!(leases.expired_leases(at(9), 9).await.unwrap().len(), 1);
    let mut changes = store.as_change_feed().unwrap().changes();
    super::feed::subscribed(&mut changes).await;
    store.delete(&TaskId::new("t")).await.unwrap();
    assert_eq!(super::feed::next(&mut changes).await, super::feed::changed("t", None));

    let weak = RedisStore::open(&url(server.port(), "weak:hunter2@")).unwrap();
    assert!(refused(&weak).await.contains("right"));
}

#[tokio::test]
async fn tls_is_spoken_and_only_with_whom_is_trusted() {
    let directory = tempfile::tempdir().unwrap();
    let at_path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let read = |name: &str| std::fs::read(at_path(name)).unwrap();
    for name in ["authority", "stranger"] {
        certificates::authority(directory.path(), name);
    }
    for name in ["server", "client"] {
        certificates::certificate(directory.path(), "authority", name);
    }
    let (port, certificate, key, ca) = (
        free_port(),
        at_path("server.pem"),
        at_path("server.key"),
        at_path("authority.pem"),
    );
    let port_text = port.to_string();
    let options = [
        "--tls-port",
        &port_text,
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &ca,
        "--requirepass",
        "hunter2",
    ];
    let Some(_server) = servers::redis(&options) else {
        return;
    };
    let url = format!("rediss://:hunter2@127.0.0.1:{port}");
    let store = RedisOptions::new(&url)
        .unwrap()
        .root_certificates(read("authority.pem"))
        .client_certificate(read("client.pem"), read("client.key"))
        .open()
        .unwrap();
    store.create(record("t", None)).await.unwrap();
    let mut changes = store.as_change_feed().unwrap().changes();
    super::feed::subscribed(&mut changes).await;
    store.delete(&TaskId::new("t")).await.unwrap();
    assert_eq!(super::feed::next(&mut changes).await, super::feed::changed("t", None));

    for options in [
        RedisOptions::new(&url).unwrap().root_certificates(read("stranger.pem")),
        // The system trusts no certificate made here.
        RedisOptions::new(&url).unwrap(),
    ] {
        let store = options.open().unwrap();
        assert!(refused(&store).await.contains("not trusted"));
    }
}

#[tokio::test]
async fn clients_and_managers_of_the_application_are_used() {
    let Some(server) = servers::redis(&[]) else { return };
    let client = redis::Client::open(server.url()).unwrap();
    let manager = client.get_connection_manager().await.unwrap();
    let given = RedisOptions::from_client(client.clone()).open().unwrap();
    given.create(record("t", None)).await.unwrap();
    let shared = RedisOptions::from_client(client)
        .connection_manager(manager)
        .open()
        .unwrap();
    shared.get(&TaskId::new("t"), at(1)).await.unwrap().unwrap();
    let mut changes = shared.as_change_feed().unwrap().changes();
    super::feed::subscribed(&mut changes).await;
    given.delete(&TaskId::new("t")).await.unwrap();
    assert_eq!(super::feed::next(&mut changes).await, super::feed::changed("t", None));
}

#[tokio::test]
async fn a_socket_of_this_machine_will_do() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("redis.sock");
    let path = socket.to_str().unwrap();
    let Some(_server) = servers::redis(&["--unixsocket", path]) else {
        return;
    };
    let store = RedisStore::open(&format!("redis+unix://{path}?db=3")).unwrap();
    store.create(record("t", None)).await.unwrap();
    store.get(&TaskId::new("t"), at(1)).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_database_that_is_not_there_is_refused() {
    let Some(server) = servers::redis(&[]) else { return };
    let store = RedisStore::open(&format!("{}/5", server.url())).unwrap();
    store.create(record("t", None)).await.unwrap();
    let beyond = RedisStore::open(&format!("{}/500", server.url())).unwrap();
    assert!(refused(&beyond).await.contains("database"));
}

#[test]
fn options_that_cannot_be_used_are_refused() {
    let is_refused = |outcome: Result<RedisOptions, StoreError>| {
        let error = outcome.and_then(RedisOptions::open).unwrap_err();
        assert!(matches!(error, StoreError::Refused { .. }), "{error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    };
    is_refused(RedisOptions::new("redis:hunter2"));
    is_refused(RedisOptions::new("rediss://:hunter2@db#insecure"));
    let server = || RedisOptions::new("redis://db").unwrap();
    is_refused(Ok(server().key_prefix("{}")));
    is_refused(Ok(server().root_certificates("a certificate without TLS")));
    let client = redis::Client::open("redis://db").unwrap();
    is_refused(Ok(RedisOptions::from_client(client).root_certificates("a certificate")));
}
