//! `mcp.tasks.store.url` and `mcp.tasks.store.key-prefix`.

use mcp_tasks::{Config, TaskRuntime};

use super::{raw, shared, unique};

fn build(url: &str, prefix: &str) -> Result<TaskRuntime, mcp_tasks::StartError> {
    let config = Config::builder()
        .without_file()
        .set("mcp.tasks.store.url", url)
        .set("mcp.tasks.store.key-prefix", prefix)
        .build()?;
    TaskRuntime::builder()
        .config(config)
        .without_inventory()
        .register::<crate::sqlite::selection::ask_to_go_on>()
        .build()
}

#[test]
fn a_runtime_is_built_outside_tokio_and_before_the_server_is_there() {
    build("postgres://app:hunter2@127.0.0.1:1/app", "p:").unwrap();
}

#[test]
fn a_url_that_cannot_be_used_stops_the_start_and_is_not_shown() {
    for (url, words) in [
        ("postgres:app:hunter2", "`//`"),
        ("postgres://app:hunter2@", "no host"),
        ("postgres://app:hun@ter2@db/app", "more than one `@`"),
        ("postgres://app:hunter2@db:port/app", "port"),
        ("postgres://app:hunt/er2@db/app", "in front of an `@`"),
        ("postgres://db/app?application_name=a@hunter2", "in front of an `@`"),
        ("postgres://app:hunter2@db/app?sslmode=hunter2", "sslmode"),
        ("postgres://app:hunter2@db/app?colour=hunter2", "colour"),
        ("postgres://app:hunter2@db/app?sslkey=hunter2", "with_pool"),
        ("postgres://app:hunter2@db/app?pool_size=0", "pool_size"),
        (
            "postgres://app:hunter2@db/app?sslmode=verify-full&sslrootcert=/nowhere.pem",
            "/nowhere.pem",
        ),
    ] {
        let error = build(url, "p:").unwrap_err().to_string();
        assert!(
            error.contains("mcp.tasks.store.url") && error.contains(words),
            "{url}: {error}"
        );
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[tokio::test]
async fn the_prefix_of_the_settings_is_the_stores() {
    let Some(server) = shared() else { return };
    let prefix = unique("chosen:");
    let engine = mcp_tasks::__private::Direct::new(build(server.url(), &prefix).unwrap());
    let created = engine.create("ask_to_go_on", &serde_json::json!({})).await.unwrap();
    let query = "SELECT id FROM mcp_tasks WHERE prefix = $1";
    let stored: String = raw(server.url())
        .await
        .query_one(query, &[&prefix])
        .await
        .unwrap()
        .get(0);
    assert_eq!(stored, created.task_id.as_str());
}
