//! Passwords, TLS, and servers that say no.

use std::fs;
use std::process::Command;

use futures::StreamExt;
use mcp_tasks::store::PostgresOptions;
use mcp_tasks_core::{StoreError, TaskChange, TaskId, TaskStore};
use mcp_tasks_tests::certificates;
use mcp_tasks_tests::servers::{self, DbServer};

use super::{options, raw};
use crate::records::{at, record};

const PASSWORD: &str = "p@ss/w?rd:hunter2";

/// Everything that an error says, to its last cause.
fn words(error: &dyn std::error::Error) -> String {
    let mut words = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(cause) = source {
        words += &format!(" {cause} {cause:?}");
        source = cause.source();
    }
    words
}

async fn reached(options: PostgresOptions) -> Result<(), StoreError> {
    options.open()?.get(&TaskId::new("t"), at(1)).await.map(drop)
}

#[tokio::test]
async fn a_password_is_asked_for_and_never_shown() {
    let Some(mut server) = servers::postgres(&[]) else {
        return;
    };
    let role = format!("CREATE ROLE app LOGIN SUPERUSER PASSWORD '{PASSWORD}'");
    raw(server.url()).await.batch_execute(&role).await.unwrap();
    let access = "host all app all scram-sha-256\nhost all all all trust\n";
    fs::write(server.directory().join("data/pg_hba.conf"), access).unwrap();
    server.start();

    let base = format!("127.0.0.1:{}/postgres", server.port());
    let encoded = "p%40ss%2Fw%3Frd%3Ahunter2";
    reached(options(&format!("postgresql://app:{encoded}@{base}")))
        .await
        .unwrap();
    reached(options(&format!("postgres://app@{base}")).password(PASSWORD))
        .await
        .unwrap();

    let wrong = options(&format!("postgres://app:wrong-hunter2@{base}"));
    assert!(!format!("{wrong:?}").contains("hunter2"));
    let store = wrong.open().unwrap();
    let error = store.create(record("t", None)).await.unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("password"), "{error}");
    assert!(!words(&error).contains("hunter2"), "{}", words(&error));
    assert!(!format!("{store:?}").contains("hunter2"));

    for url in [
        format!("postgres://app@{base}"),
        format!("postgres://postgres@127.0.0.1:{}/nowhere", server.port()),
    ] {
        let error = reached(options(&url)).await.unwrap_err();
        assert!(matches!(error, StoreError::Refused { .. }), "{error}");
    }
    server.kill();
    let error = reached(options(&format!("postgres://app:{encoded}@{base}")))
        .await
        .unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert!(!words(&error).contains("hunter2"), "{}", words(&error));
}

/// Makes an authority and a certificate for 127.0.0.1, and switches TLS on.
async fn with_tls(server: &mut DbServer) {
    let directory = server.directory().to_owned();
    for name in ["authority", "stranger"] {
        certificates::authority(&directory, name);
    }
    certificates::certificate(&directory, "authority", "server");
    let data = directory.join("data");
    for (name, stored) in [("server.pem", "server.crt"), ("server.key", "server.key")] {
        fs::copy(directory.join(name), data.join(stored)).unwrap();
        let script = r#"chmod 600 "$1" && chown --reference="$2" "$1""#;
        let kept = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(data.join(stored))
            .arg(&data)
            .status();
        assert!(kept.unwrap().success());
    }
    raw(server.url())
        .await
        .batch_execute("ALTER SYSTEM SET ssl = on")
        .await
        .unwrap();
    server.start();
}

#[tokio::test]
async fn tls_verifies_what_its_mode_says() {
    let Some(mut server) = servers::postgres(&[]) else {
        return;
    };
    let without = options(&format!("{}?sslmode=require", server.url()));
    let error = reached(without).await.unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error}");
    reached(options(&format!("{}?sslmode=prefer", server.url())))
        .await
        .unwrap();

    with_tls(&mut server).await;
    let authority = server.directory().join("authority.pem").display().to_string();
    let stranger = server.directory().join("stranger.pem").display().to_string();
    let by_address = server.url().to_owned();
    let by_name = by_address.replace("127.0.0.1", "localhost");
    let raw = raw(&by_address).await;
    for (url, options, encrypted) in [
        (&by_address, "sslmode=disable".to_owned(), Some(false)),
        (&by_address, String::new(), Some(true)),
        (&by_name, "sslmode=require".to_owned(), Some(true)),
        (
            &by_name,
            format!("sslmode=verify-ca&sslrootcert={authority}"),
            Some(true),
        ),
        (&by_name, format!("sslmode=require&sslrootcert={stranger}"), None),
        (&by_name, format!("sslmode=verify-full&sslrootcert={authority}"), None),
        (
            &by_address,
            format!("sslmode=verify-full&sslrootcert={authority}"),
            Some(true),
        ),
        (&by_address, format!("sslmode=verify-full&sslrootcert={stranger}"), None),
        (&by_address, format!("sslmode=verify-ca&sslrootcert={stranger}"), None),
    ] {
        let name = super::unique("tls");
        let store = super::options(&format!("{url}?application_name={name}&{options}"))
            .open()
            .unwrap();
        let outcome = store.get(&TaskId::new("t"), at(1)).await;
        let Some(encrypted) = encrypted else {
            let error = outcome.unwrap_err();
            assert!(matches!(error, StoreError::Refused { .. }), "{options}: {error}");
            assert!(error.to_string().contains("TLS"), "{options}: {error}");
            continue;
        };
        outcome.unwrap_or_else(|error| panic!("{options}: {}", words(&error)));
        let query = "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = $1";
        let seen: bool = raw.query_one(query, &[&name]).await.unwrap().get(0);
        assert_eq!(seen, encrypted, "{options}");
    }
    let nowhere = super::options(&format!("{by_address}?sslmode=verify-full&sslrootcert=/nowhere/ca.pem")).open();
    assert!(nowhere.unwrap_err().to_string().contains("/nowhere/ca.pem"));
}

/// As libpq has it: a host that begins with a slash is the directory of a socket.
#[tokio::test]
async fn a_socket_of_this_machine_will_do() {
    let Some(server) = servers::postgres(&[]) else {
        return;
    };
    let directory = server.directory().display().to_string();
    let (port, encoded) = (server.port(), directory.replace('/', "%2F"));
    for url in [
        format!("postgres://postgres@{encoded}:{port}/postgres"),
        format!("postgres://postgres@{encoded}:{port}/postgres?sslmode=disable"),
        format!("postgres:///postgres?host={directory}&port={port}&user=postgres"),
    ] {
        let store = options(&url).open().unwrap();
        store.get(&TaskId::new("t"), at(1)).await.unwrap();
        let mut changes = store.as_change_feed().unwrap().changes();
        for _ in 0..2 {
            // The second one comes with the connection that listens.
            assert_eq!(changes.next().await, Some(TaskChange::Resumed), "{url}");
        }
    }
}
