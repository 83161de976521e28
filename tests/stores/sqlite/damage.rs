//! Rows that cannot be read, files that are not ours, disks that are full.

use mcp_tasks::store::{SqliteOptions, SqliteStore};
use mcp_tasks_core::{StoreError, TaskId, TaskStore, WriteId};

use super::Fresh;
use crate::records::{at, every_use_is_refused, increment, json, record};

/// Overwrites the stored text of a task.
fn plant(fresh: &Fresh, id: &str, text: &str) {
    let changed = fresh
        .raw()
        .execute("UPDATE tasks SET record = ?2 WHERE id = ?1", [id, text])
        .unwrap();
    assert_eq!(changed, 1);
}

fn planted(fresh: &Fresh, id: &str) -> String {
    fresh
        .raw()
        .query_row("SELECT record FROM tasks WHERE id = ?1", [id], |row| row.get(0))
        .unwrap()
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_left_alone_and_keeps_nothing_from_being_swept() {
    let fresh = Fresh::new();
    for n in 0..300 {
        fresh.create(record(&format!("t{n:03}"), Some(n))).await.unwrap();
    }
    let newer = planted(&fresh, "t005").replace(r#""format":1"#, r#""format":99,"surprise":{}"#);
    let planted_rows = [
        ("t000", "{"),
        ("t005", newer.as_str()),
        ("t100", ""),
        ("t150", "\0null"),
    ];
    for (id, text) in planted_rows {
        plant(&fresh, id, text);
    }
    let sweep = fresh.as_sweep().unwrap();
    assert_eq!(sweep.sweep(at(200)).await.unwrap(), 200 - 4);
    assert_eq!(sweep.sweep(at(200)).await.unwrap(), 0);
    assert_eq!(sweep.sweep(at(1_000)).await.unwrap(), 100);
    for (id, text) in planted_rows {
        every_use_is_refused(&fresh, id, at(1_000)).await;
        assert_eq!(planted(&fresh, id), text, "it is left as it was");
        fresh.delete(&TaskId::new(id)).await.unwrap();
        fresh.create(record(id, None)).await.unwrap();
    }
}

#[tokio::test]
async fn a_record_written_behind_the_stores_back_is_seen() {
    let fresh = Fresh::new();
    fresh.create(record("t", None)).await.unwrap();
    let id = TaskId::new("t");
    // Deleted and created anew at the version this store has seen, as another process would.
    let other = SqliteStore::open(fresh.path()).unwrap();
    other.delete(&id).await.unwrap();
    let mut anew = record("t", None);
    (anew.tool, anew.last_write) = ("other".into(), Some(WriteId::new(2)));
    other.create(anew).await.unwrap();
    let updated = fresh.update(&id, at(1), WriteId::new(3), increment()).await.unwrap();
    assert_eq!(&*updated.unwrap().record.tool, "other");
    let updated = other.update(&id, at(1), WriteId::new(4), increment()).await.unwrap();
    assert_eq!(updated.unwrap().record.version, 3);
}

#[tokio::test]
async fn nul_bytes_are_kept_wherever_they_are() {
    let fresh = Fresh::new();
    let nul = r#"{"a\u0000b":"\u0000c\u0000"}"#;
    let mut task = record("nul\0id", None);
    task.arguments = json(nul);
    task.status_message = Some("a\0b".into());
    fresh.create(task).await.unwrap();
    let id = TaskId::new("nul\0id");
    let end = std::sync::Arc::new(|task: &mcp_tasks_core::TaskRecord| {
        task.completed(
            1,
            at(1),
            &json(r#"{"content":[{"type":"text","text":"\u0000"}]}"#),
            None,
        )
    });
    fresh.update(&id, at(1), WriteId::new(2), end).await.unwrap().unwrap();
    let found = fresh.get(&id, at(1)).await.unwrap().unwrap();
    assert_eq!(found.arguments.get(), nul);
    assert!(found.result.as_ref().unwrap().get().contains(r#""\u0000""#));
    assert!(fresh.get(&TaskId::new("nul"), at(1)).await.unwrap().is_none());
}

#[tokio::test]
async fn a_full_disk_is_refused_and_what_is_stored_stays_usable() {
    let fresh = Fresh::with(|options| options.max_size(256 * 1024));
    let mut large = record("large", None);
    large.arguments = json(&format!(r#"{{"a":"{}"}}"#, "x".repeat(1 << 20)));
    fresh.create(record("small", Some(1))).await.unwrap();
    // At once, so that they share a transaction: the one that does not fit fails alone.
    let small = TaskId::new("small");
    let (refused, taken, updated) = tokio::join!(
        fresh.create(large.clone()),
        fresh.create(record("beside", None)),
        fresh.store.update(&small, at(0), WriteId::new(2), increment()),
    );
    let error = refused.unwrap_err();
    assert!(
        matches!(error, StoreError::Refused { .. }) && !error.is_retryable(),
        "{error}"
    );
    assert!(error.to_string().contains("full"), "{error}");
    assert_eq!(taken.unwrap().version, 1);
    assert_eq!(updated.unwrap().unwrap().record.version, 2);
    assert!(fresh.get(&large.task_id, at(0)).await.unwrap().is_none());

    let mut stored = 0;
    let error = loop {
        match fresh.create(record(&format!("t{stored}"), Some(1))).await {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::Refused { .. }), "{error}");
    assert!(stored > 100, "{stored}");
    assert_eq!(fresh.as_sweep().unwrap().sweep(at(2)).await.unwrap(), stored + 1);
    fresh.create(record("again", None)).await.unwrap();
}

#[tokio::test]
async fn files_that_are_not_ours_are_refused_and_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("other.db");
    let refused = |what: &str| {
        let error = SqliteStore::open(&path).unwrap_err();
        assert!(matches!(error, StoreError::Refused { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(what) && text.contains("other.db"), "{text}");
    };
    super::raw(&path).execute_batch("CREATE TABLE theirs (a)").unwrap();
    let before = std::fs::read(&path).unwrap();
    refused("another program's");
    assert_eq!(std::fs::read(&path).unwrap(), before);

    std::fs::write(
        &path,
        "no database at all, though long enough to look like one".repeat(100),
    )
    .unwrap();
    refused("no SQLite database");

    std::fs::remove_file(&path).unwrap();
    drop(SqliteStore::open(&path).unwrap());
    super::raw(&path).execute_batch("PRAGMA user_version = 2").unwrap();
    refused("upgrade this node");

    let error = SqliteStore::open(directory.path().join("nowhere/tasks.db")).unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
    let error = SqliteOptions::new(":memory:").open().unwrap_err();
    assert!(error.to_string().contains("memory"), "{error}");
}
