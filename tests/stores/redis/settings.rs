//! Settings of the server that lose tasks, and the configuration that chooses the store.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex};

use mcp_tasks::__private::Direct;
use mcp_tasks::Config;
use mcp_tasks::prelude::*;
use mcp_tasks_core::{TaskStatus, TaskStore};
use mcp_tasks_tests::servers;
use redis::Commands;

use crate::records::{json, record};

/// What is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// Collects what this thread logs from now on.
    fn start(&self) -> tracing::subscriber::DefaultGuard {
        let log = self.clone();
        let collector = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(tracing::Level::WARN)
            .with_writer(move || log.clone());
        tracing::subscriber::set_default(collector.finish())
    }
}

/// What is said of a server with these options when a store on it is first used.
async fn warnings(options: &[&str], user: &str, count: usize) -> Option<String> {
    let server = servers::redis(options)?;
    let log = Log::default();
    let guard = log.start();
    let store = super::RedisStore::open(&format!("redis://{user}127.0.0.1:{}", server.port())).unwrap();
    for n in 0..3 {
        store.create(record(&format!("t{n}"), None)).await.unwrap();
    }
    let lines = || log.text().lines().filter(|line| line.contains("can lose them")).count();
    super::until(&format!("{count} warnings of {options:?}: {}", log.text()), || {
        lines() == count
    })
    .await;
    // Long enough for one more that would be too many: the look is a few commands on this connection.
    for n in 0..20 {
        store.create(record(&format!("u{n}"), None)).await.unwrap();
    }
    assert_eq!(lines(), count, "{}", log.text());
    drop(guard);
    Some(log.text())
}

#[tokio::test]
async fn settings_that_lose_tasks_are_warned_of_once() {
    let Some(none) = warnings(&["--maxmemory-policy", "noeviction"], "", 0).await else {
        return;
    };
    assert_eq!(none, "");
    let log = warnings(&["--appendonly", "no"], "", 1).await.unwrap();
    assert!(log.contains("`appendonly`"), "{log}");
    let log = warnings(
        &["--appendfsync", "everysec", "--maxmemory-policy", "allkeys-lru"],
        "",
        2,
    )
    .await
    .unwrap();
    assert!(
        log.contains("`appendfsync` is `everysec`") && log.contains("`maxmemory-policy` is `allkeys-lru`"),
        "{log}"
    );
    // Where CONFIG is not allowed, INFO says most of it; where neither is, nothing is said.
    let directory = tempfile::tempdir().unwrap();
    for (rights, count) in [("-config", 2), ("-config -info", 0)] {
        let users = directory.path().join("users.acl");
        std::fs::write(&users, format!("user u on >hunter2 ~* &* +@all {rights}\n")).unwrap();
        let options = [
            "--appendonly",
            "no",
            "--maxmemory-policy",
            "volatile-ttl",
            "--aclfile",
            users.to_str().unwrap(),
        ];
        let log = warnings(&options, "u:hunter2@", count).await.unwrap();
        assert_eq!(log.contains("`volatile-ttl`"), count > 0, "{log}");
        assert!(!log.contains("hunter2"), "{log}");
    }
}

#[derive(Deserialize, JsonSchema, ElicitForm)]
struct Go {
    /// Whether to go on
    on: bool,
}

/// Asks whether to go on.
#[mcp_task]
async fn ask_before_going_on(ctx: ToolContext) -> Result<String, ToolError> {
    let answer = ctx.elicit::<Go>("On?").await?;
    Ok(format!("on: {}", answer.accepted().is_some_and(|go| go.on)))
}

fn build(url: &str) -> Result<TaskRuntime, mcp_tasks::StartError> {
    let config = Config::builder()
        .without_file()
        .set("mcp.tasks.store.url", url)
        .set("mcp.tasks.store.key-prefix", "mine:")
        .build()?;
    TaskRuntime::builder()
        .config(config)
        .without_inventory()
        .register::<ask_before_going_on>()
        .build()
}

#[test]
fn a_parked_task_goes_on_in_another_process_under_the_prefix_of_the_configuration() {
    let Some(server) = servers::redis(&[]) else { return };
    let reach = async |engine: &Direct, id: &mcp_tasks::TaskId, status| loop {
        let record = engine.get(id).await.unwrap();
        if record.status == status {
            return record;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    };
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    // Built outside a runtime, which needs no server yet.
    let first = build(server.url()).unwrap();
    let id = runtime().block_on(async {
        let engine = Direct::new(first);
        let record = engine
            .create("ask_before_going_on", &serde_json::json!({}))
            .await
            .unwrap();
        reach(&engine, &record.task_id, TaskStatus::InputRequired).await;
        record.task_id.clone()
    });
    let second = build(server.url()).unwrap();
    runtime().block_on(async {
        let engine = Direct::new(second);
        let parked = engine.get(&id).await.unwrap();
        let yes = json(r#"{"action":"accept","content":{"on":true}}"#);
        engine
            .answer(&id, BTreeMap::from([(parked.open[0].key.to_string(), yes)]))
            .await
            .unwrap();
        let done = reach(&engine, &id, TaskStatus::Completed).await;
        assert!(done.result.as_ref().unwrap().get().contains("on: true"));
    });
    let keys: Vec<String> = super::raw(server.url()).keys("*").unwrap();
    assert!(
        !keys.is_empty() && keys.iter().all(|key| key.starts_with("mine:")),
        "{keys:?}"
    );
}

#[test]
fn a_url_that_cannot_be_used_stops_the_start_and_names_the_key() {
    for (url, words) in [
        ("redis://:hunter2@db?password=x", "after a `?`"),
        ("rediss://:hunter2@db/#insecure", "SSL_CERT_FILE"),
        ("redis-cluster://:hunter2@", "redis-cluster://host1"),
    ] {
        let error = build(url).unwrap_err().to_string();
        assert!(
            error.contains("mcp.tasks.store.url") && error.contains(words),
            "{error}"
        );
        assert!(!error.contains("hunter2"), "{error}");
    }
}
