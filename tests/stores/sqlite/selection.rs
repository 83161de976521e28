//! `mcp.tasks.store.url`, and tasks that outlive their server.

use std::collections::BTreeMap;

use mcp_tasks::__private::Direct;
use mcp_tasks::Config;
use mcp_tasks::prelude::*;
use mcp_tasks_core::TaskStatus;

use crate::records::json;

#[derive(Deserialize, JsonSchema, ElicitForm)]
struct Go {
    /// Whether to go on
    on: bool,
}

/// Asks whether to go on.
#[mcp_task]
pub(crate) async fn ask_to_go_on(ctx: ToolContext) -> Result<String, ToolError> {
    let answer = ctx.elicit::<Go>("On?").await?;
    Ok(format!("on: {}", answer.accepted().is_some_and(|go| go.on)))
}

fn build(url: &str) -> Result<TaskRuntime, mcp_tasks::StartError> {
    let config = Config::builder()
        .without_file()
        .set("mcp.tasks.store.url", url)
        .build()?;
    TaskRuntime::builder()
        .config(config)
        .without_inventory()
        .register::<ask_to_go_on>()
        .build()
}

#[tokio::test]
async fn a_parked_task_goes_on_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("tasks.db").display());
    goes_on_after_a_restart(&url).await;
}

/// A task that is parked by one server on the store is answered and completed by another.
pub(crate) async fn goes_on_after_a_restart(url: &str) {
    let reach = async |engine: &Direct, id: &mcp_tasks::TaskId, status| loop {
        let record = engine.get(id).await.unwrap();
        if record.status == status {
            return record;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    };
    let id = {
        let engine = Direct::new(build(url).unwrap());
        let record = engine.create("ask_to_go_on", &serde_json::json!({})).await.unwrap();
        reach(&engine, &record.task_id, TaskStatus::InputRequired).await;
        record.task_id.clone()
    };
    let engine = Direct::new(build(url).unwrap());
    let parked = engine.get(&id).await.unwrap();
    let yes = json(r#"{"action":"accept","content":{"on":true}}"#);
    let answers = BTreeMap::from([(parked.open[0].key.to_string(), yes)]);
    engine.answer(&id, answers).await.unwrap();
    let done = reach(&engine, &id, TaskStatus::Completed).await;
    assert!(done.result.as_ref().unwrap().get().contains("on: true"));
}

#[tokio::test]
async fn a_url_that_cannot_be_used_stops_the_start_and_names_the_key() {
    for (url, words) in [
        ("sqlite::memory:", "sqlite:tasks.db"),
        ("sqlite:/nowhere/at/all/tasks.db", "/nowhere/at/all/tasks.db"),
        ("mysql://root:hunter2@db", "`mysql:`"),
    ] {
        let error = build(url).unwrap_err().to_string();
        assert!(
            error.contains("mcp.tasks.store.url") && error.contains(words),
            "{error}"
        );
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[tokio::test]
async fn a_place_where_no_file_can_be_is_said_once_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().to_str().unwrap();
    let file = format!("{place}/file");
    std::fs::write(&file, "").unwrap();
    for (path, words) in [
        (
            format!("{place}/none/tasks.db"),
            format!("the directory `{place}/none` does not exist; create it"),
        ),
        (place.to_owned(), "it is a directory; name a file in it".to_owned()),
        (format!("{file}/tasks.db"), format!("`{file}` is not a directory")),
    ] {
        let error = build(&format!("sqlite:{path}")).unwrap_err().to_string();
        assert_eq!(error.matches(&words).count(), 1, "{error}");
        assert!(error.contains(&format!("`{path}`")), "{error}");
        assert!(!error.contains("unable to open"), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_cannot_start_for_another_reason_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    let config = Config::builder()
        .without_file()
        .set("mcp.tasks.store.url", format!("sqlite:{}", path.display()))
        .set("mcp.tasks.lease", "soon")
        .build()
        .unwrap();
    assert!(
        TaskRuntime::builder()
            .config(config)
            .without_inventory()
            .build()
            .is_err()
    );
    assert!(!path.exists());
}
