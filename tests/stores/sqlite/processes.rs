//! Several processes on one file, some of them killed.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use mcp_tasks::store::SqliteStore;
use mcp_tasks_core::{StoreError, TaskId, TaskStore, WriteId};

use super::Fresh;
use crate::records::{at, increment, record};

const FILE: &str = "MCP_TASKS_TEST_SQLITE_FILE";
const NUMBER: &str = "MCP_TASKS_TEST_SQLITE_NUMBER";

const TASKS: u64 = 10;
const UPDATES: u64 = 500;

/// This program again, in which only the test `name` runs, on the file.
fn child(name: &str, file: &Path, number: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("sqlite::processes::{name}"), "--nocapture"])
        .env(FILE, file)
        .env(NUMBER, number.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What a child was started with; `None` in an ordinary run, in which it has nothing to do.
fn started_with() -> Option<(SqliteStore, u64)> {
    let file = std::env::var_os(FILE)?;
    let number = std::env::var(NUMBER).unwrap().parse().unwrap();
    Some((SqliteStore::open(file).unwrap(), number))
}

#[tokio::test(flavor = "multi_thread")]
async fn child_that_updates() {
    let Some((store, number)) = started_with() else { return };
    let store = Arc::new(store);
    let updates: Vec<_> = (0..UPDATES)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                let id = TaskId::new(&format!("t{}", n % TASKS));
                let write = WriteId::new(u128::from((number + 1) * 1_000_000 + n));
                store.update(&id, at(1), write, increment()).await
            })
        })
        .collect();
    for update in updates {
        let updated = update.await.unwrap().expect("no lock reaches a caller");
        assert!(updated.unwrap().applied);
    }
}

#[tokio::test]
async fn two_processes_update_ten_tasks_and_no_lock_reaches_anyone() {
    let fresh = Fresh::new();
    for n in 0..TASKS {
        fresh.create(record(&format!("t{n}"), None)).await.unwrap();
    }
    let children = [0, 1].map(|number| child("child_that_updates", &fresh.path(), number));
    // A third one reads meanwhile.
    for _ in 0..200 {
        assert!(fresh.get(&TaskId::new("t0"), at(1)).await.unwrap().is_some());
    }
    for child in children {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}");
    }
    for n in 0..TASKS {
        let found = fresh.get(&TaskId::new(&format!("t{n}")), at(1)).await.unwrap().unwrap();
        let updates = 2 * UPDATES / TASKS;
        assert_eq!((found.version, found.poll_interval_ms), (1 + updates, 2_000 + updates));
    }
}

#[tokio::test]
async fn processes_that_open_a_new_file_at_once_all_succeed() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..5 {
        let path = directory.path().join(format!("{round}.db"));
        let children: Vec<_> = (0..4).map(|number| child("child_that_opens", &path, number)).collect();
        for child in children {
            assert!(child.wait_with_output().unwrap().status.success());
        }
    }
}

#[tokio::test]
async fn child_that_opens() {
    let Some((store, number)) = started_with() else { return };
    store.create(record(&format!("t{number}"), None)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn child_that_is_killed() {
    let Some((store, _)) = started_with() else { return };
    let store = Arc::new(store);
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..8_u32 {
        let store = store.clone();
        writers.spawn(async move {
            for n in 0_u32.. {
                let id = format!("t{writer}-{n}");
                store.create(record(&id, None)).await.unwrap();
                let write = WriteId::new(2);
                store
                    .update(&TaskId::new(&id), at(1), write, increment())
                    .await
                    .unwrap();
                println!("done {id}");
            }
        });
    }
    // No writer ends by itself; one that fails ends the child.
    writers.join_next().await.unwrap().unwrap();
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_kill() {
    let fresh = Fresh::new();
    for _ in 0..3 {
        let mut victim = child("child_that_is_killed", &fresh.path(), 0);
        let output = BufReader::new(victim.stdout.take().unwrap());
        let mut acknowledged = Vec::new();
        // On another thread's time: lines come as fast as commits do.
        for line in output.lines() {
            let line = line.unwrap();
            if let Some(id) = line.split("done ").nth(1) {
                acknowledged.push(id.to_owned());
            }
            if acknowledged.len() == 100 {
                victim.kill().unwrap();
            }
        }
        victim.wait().unwrap();
        assert!(acknowledged.len() >= 100, "{}", acknowledged.len());
        for id in acknowledged {
            let id = TaskId::new(&id);
            let found = fresh.get(&id, at(1)).await.unwrap().expect("it was acknowledged");
            assert_eq!((found.version, found.poll_interval_ms), (2, 2_001));
            fresh.delete(&id).await.unwrap();
        }
        let left: i64 = fresh
            .raw()
            .query_row("SELECT count(*) FROM tasks", [], |row| row.get(0))
            .unwrap();
        assert!(left <= 8 * 2, "what was not acknowledged is at most under way: {left}");
        let sound: String = fresh
            .raw()
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(sound, "ok");
        fresh.raw().execute("DELETE FROM tasks", []).unwrap();
    }
}

#[tokio::test]
async fn a_file_that_stays_locked_is_unavailable_in_time_and_usable_after() {
    let fresh = Fresh::with(|options| options.timeout(std::time::Duration::from_millis(300)));
    fresh.create(record("t", None)).await.unwrap();
    let other = fresh.raw();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let start = std::time::Instant::now();
    let id = TaskId::new("t");
    let error = fresh
        .update(&id, at(1), WriteId::new(2), increment())
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    assert!(start.elapsed() < std::time::Duration::from_secs(2));
    assert!(!error.to_string().contains("database is locked"), "{error}");
    // Readers do not wait for writers, nor does a process that opens the file.
    assert!(fresh.get(&id, at(1)).await.unwrap().is_some());
    let another = SqliteStore::open(fresh.path()).unwrap();
    assert!(another.get(&id, at(1)).await.unwrap().is_some());
    other.execute_batch("ROLLBACK").unwrap();
    let updated = loop {
        match fresh.update(&id, at(1), WriteId::new(2), increment()).await {
            Err(error) if error.is_retryable() => {}
            outcome => break outcome.unwrap().unwrap(),
        }
    };
    assert_eq!((updated.record.version, updated.record.poll_interval_ms), (2, 2_001));
}
