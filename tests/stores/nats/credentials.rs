//! Servers that know their users by an operator's signature: users show a credentials file.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_tasks::store::{NatsOptions, NatsStore};
use mcp_tasks_core::{StoreError, TaskId, TaskStore};
use mcp_tasks_tests::servers::nats;
use nkeys::KeyPair;
use serde_json::{Value, json};

use crate::records::{at, record};

/// What `issuer` says of `subject`, signed, as `nsc` writes it (NATS JWT, version 2).
fn signed(issuer: &KeyPair, subject: &KeyPair, name: &str, mut nats: Value) -> String {
    nats["version"] = json!(2);
    let claims = json!({
        "jti": name, "iat": 1_700_000_000, "iss": issuer.public_key(), "name": name, "sub": subject.public_key(),
        "nats": nats,
    });
    let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let head = encoded(&json!({"typ": "JWT", "alg": "ed25519-nkey"}));
    let text = format!("{head}.{}", encoded(&claims));
    let signature = issuer.sign(text.as_bytes()).expect("a seed signs");
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// A credentials file for a user of the account.
fn credentials(directory: &Path, account: &KeyPair) -> PathBuf {
    let user = KeyPair::new_user();
    let no_limits = json!({"type": "user", "pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1});
    let jwt = signed(account, &user, "app", no_limits);
    let seed = user.seed().expect("a new pair has a seed");
    let path = directory.join(format!("{}.creds", user.public_key()));
    let text = format!(
        "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    );
    std::fs::write(&path, text).expect("the directory is there");
    path
}

#[tokio::test]
async fn a_credentials_file_opens_and_one_of_a_stranger_does_not() {
    let directory = tempfile::tempdir().unwrap();
    let operator = KeyPair::new_operator();
    let [account, system, stranger] = [(); 3].map(|()| KeyPair::new_account());
    let limits = |storage: i64| {
        json!({
            "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1, "leaf": -1,
            "mem_storage": storage, "disk_storage": storage, "streams": storage, "consumer": storage,
        })
    };
    // The system's account has no JetStream.
    let known = [(&account, "tasks", -1), (&system, "system", 0)].map(|(account, name, storage)| {
        let claims = json!({"type": "account", "limits": limits(storage)});
        let jwt = signed(&operator, account, name, claims);
        format!("{}: \"{jwt}\"", account.public_key())
    });
    let config = format!(
        "operator: \"{}\"\nsystem_account: {}\nresolver: MEMORY\nresolver_preload: {{ {} }}\n",
        signed(&operator, &operator, "operator", json!({"type": "operator"})),
        system.public_key(),
        known.join(", "),
    );
    let path = directory.path().join("nats.conf");
    std::fs::write(&path, config).unwrap();
    let Some(server) = nats(&["--config", path.to_str().unwrap()]) else {
        return;
    };
    let file = credentials(directory.path(), &account);
    let in_url = NatsStore::open(&format!("{}?creds={}", server.url(), file.display())).unwrap();
    in_url.create(record("t", None)).await.unwrap();
    let in_code = NatsOptions::new(server.url()).unwrap().credentials_file(&file);
    let found = in_code.open().unwrap().get(&TaskId::new("t"), at(1)).await.unwrap();
    assert!(found.is_some());

    let file = credentials(directory.path(), &stranger);
    let refused = NatsOptions::new(server.url()).unwrap().credentials_file(&file);
    let store = refused.open().unwrap();
    let error = store.create(record("u", None)).await.unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
    assert!(error.to_string().contains("credentials"), "{error}");
    let shown = format!("{error:?} {store:?}");
    let text = std::fs::read_to_string(&file).unwrap();
    let secrets = text.lines().filter(|line| line.len() > 40);
    assert!(
        secrets.count() == 2 && text.lines().all(|line| line.len() <= 40 || !shown.contains(line)),
        "{shown}"
    );
}
