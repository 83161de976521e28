//! `mcp.tasks.store.url` that names a NATS server.

use mcp_tasks::{Config, TaskRuntime};

use super::Fresh;

fn build(url: &str, prefix: &str) -> Result<TaskRuntime, mcp_tasks::StartError> {
    let config = Config::builder()
        .without_file()
        .set("mcp.tasks.store.url", url)
        .set("mcp.tasks.store.key-prefix", prefix)
        .build()?;
    TaskRuntime::builder().config(config).without_inventory().build()
}

#[test]
fn a_runtime_is_built_without_tokio_and_without_a_server() {
    build("nats://me:hunter2@127.0.0.1:1?replicas=3", "mcp-tasks:").unwrap();
}

#[test]
fn a_url_or_prefix_that_cannot_be_used_stops_the_start_and_shows_no_secret() {
    for (url, prefix, words) in [
        ("nats://me:hunter2@host?replicas=many", "mcp-tasks:", "`replicas`"),
        ("tls://hunter2@", "mcp-tasks:", "nats://host"),
        ("nats://me:hunter2@host", "a:b:", "`a:b:`"),
    ] {
        let error = build(url, prefix).unwrap_err().to_string();
        assert!(
            error.contains("mcp.tasks.store.url") && error.contains(words),
            "{error}"
        );
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[tokio::test]
async fn a_parked_task_goes_on_in_another_process() {
    let Some(fresh) = Fresh::new() else { return };
    crate::sqlite::selection::goes_on_after_a_restart(fresh.keeps.url()).await;
}
